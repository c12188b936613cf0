// AMGCL: conjugate gradients or BiCGStab with smoothed aggregation. README.md has the protocol.
//
// METHOD+sa-RELAXATION[-e0]: relaxation spai0 or ilu0; e0 counts every coupling as strong, which suits stencils of 27 points.
// The headers of AMGCL need it first.
#include <boost/range.hpp>
#include <boost/tuple/tuple.hpp>

#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/ilu0.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/bicgstab.hpp>
#include <amgcl/solver/cg.hpp>

#include <omp.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

using Backend = amgcl::backend::builtin<double>;

struct System {
    ptrdiff_t n = 0;
    std::vector<ptrdiff_t> row_ptr, col_idx;
    std::vector<double> values, b;
    const char *rhs = "ones";
};

struct Task {
    std::string file, config;
    double rtol;
    size_t max_iterations;
};

template <class T>
std::vector<T> numbers(std::ifstream &from, size_t count) {
    std::vector<T> all(count);
    from.read(reinterpret_cast<char *>(all.data()), static_cast<std::streamsize>(count * sizeof(T)));
    all.resize(static_cast<size_t>(from.gcount()) / sizeof(T));
    return all;
}

System read_system(const std::string &path) {
    std::ifstream from(path, std::ios::binary);
    auto head = numbers<int64_t>(from, 2);
    if (head.size() != 2) throw std::runtime_error("the matrix file cannot be read");
    auto rows = static_cast<size_t>(head[0]), entries = static_cast<size_t>(head[1]);
    auto row_ptr = numbers<int64_t>(from, rows + 1);
    auto col_idx = numbers<uint32_t>(from, entries);
    System a;
    a.n = head[0];
    a.values = numbers<double>(from, entries);
    if (a.values.size() != entries) throw std::runtime_error("the matrix file is too short");
    a.row_ptr.assign(row_ptr.begin(), row_ptr.end());
    a.col_idx.assign(col_idx.begin(), col_idx.end());
    a.b = numbers<double>(from, rows);
    if (a.b.size() == rows) {
        a.rhs = "file";
        return a;
    }
    a.b.assign(rows, 0.0);
    for (size_t i = 0; i < rows; i++)
        for (ptrdiff_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) a.b[i] += a.values[k];
    return a;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double relative_residual(const System &a, const std::vector<double> &x) {
    double rr = 0, bb = 0;
    for (ptrdiff_t i = 0; i < a.n; i++) {
        double ax = 0;
        for (ptrdiff_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) ax += a.values[k] * x[a.col_idx[k]];
        rr += (a.b[i] - ax) * (a.b[i] - ax);
        bb += a.b[i] * a.b[i];
    }
    return std::sqrt(rr / bb);
}

template <template <class> class Relaxation, class Method>
void solve(const System &a, const Task &task, float strong) {
    using Solver = amgcl::make_solver<amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, Relaxation>, Method>;
    typename Solver::params options;
    options.precond.coarsening.aggr.eps_strong = strong;
    options.solver.tol = task.rtol;
    options.solver.maxiter = task.max_iterations;
    auto start = std::chrono::steady_clock::now();
    Solver solver(boost::tie(a.n, a.row_ptr, a.col_idx, a.values), options);
    double setup = seconds_since(start);
    std::vector<double> x(a.b.size(), 0.0);
    start = std::chrono::steady_clock::now();
    size_t iterations;
    double error;
    boost::tie(iterations, error) = solver(a.b, x);
    double solved = seconds_since(start);
    auto base = task.file.substr(task.file.find_last_of('/') + 1);
    std::printf("{\"peer\":\"amgcl\",\"version\":\"0.8\",\"config\":\"%s\",\"problem\":\"%s\",\"threads\":%d,\"rhs\":\"%s\","
                "\"import_seconds\":0,\"setup_seconds\":%.9g,\"solve_seconds\":%.9g,\"relative_residual\":%.9g,"
                "\"iterations\":%zu,\"status\":\"%s\"}\n",
                task.config.c_str(), base.substr(0, base.find('.')).c_str(), omp_get_max_threads(), a.rhs, setup, solved,
                relative_residual(a, x), iterations, error <= task.rtol ? "converged" : "max_iterations");
}

int main(int argc, char **argv) try {
    if (argc != 6 || std::string(argv[2]) != "solve")
        throw std::runtime_error("usage: FILE solve METHOD+PRECONDITIONER RTOL MAX_ITERATIONS");
    Task task{argv[1], argv[3], std::atof(argv[4]), std::strtoul(argv[5], nullptr, 10)};
    System a = read_system(task.file);
    using Cg = amgcl::solver::cg<Backend>;
    using BiCgStab = amgcl::solver::bicgstab<Backend>;
    using namespace amgcl::relaxation;
    if (task.config == "cg+sa-spai0") solve<spai0, Cg>(a, task, 0.08f);
    else if (task.config == "cg+sa-spai0-e0") solve<spai0, Cg>(a, task, 0.0f);
    else if (task.config == "bicgstab+sa-spai0") solve<spai0, BiCgStab>(a, task, 0.08f);
    else if (task.config == "bicgstab+sa-ilu0") solve<ilu0, BiCgStab>(a, task, 0.08f);
    else throw std::runtime_error("no configuration `" + task.config + "`");
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
