//! The axes that cases are sampled over, and which pairs of values cannot occur together.

use super::rng::Rng;

/// One property of a case, with its values and how often each is drawn.
pub struct Axis {
    pub name: &'static str,
    pub values: &'static [(&'static str, u32)],
}

/// Which axis; the index into [`AXES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    Family,
    Problem,
    Size,
    Scale,
    Rhs,
    Guess,
    Sequence,
    Preconditioner,
    Method,
    Reorder,
    Matching,
    Precision,
    Layout,
    Schedule,
    Recovery,
    Threads,
    Rtol,
    Atol,
    Iterations,
    Observer,
    Memory,
}

/// How matrices are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Random hostile matrices.
    Hostile,
    /// Small singular and nearly singular ones.
    Singular,
    /// Read from a folder.
    Catalogue,
    /// Grids of the gallery, damaged.
    Grid,
}

/// Every axis, in the order of [`Of`].
pub const AXES: [Axis; 21] = [
    Axis {
        name: "family",
        values: &[
            ("sparse", 3),
            ("dominant", 4),
            ("symmetric", 3),
            ("spd", 4),
            ("nearly-symmetric", 3),
            ("zero-diagonal", 3),
            ("empty-rows", 2),
            ("duplicates", 2),
            ("dense-rows", 2),
            ("dense", 2),
            ("diagonal", 2),
            ("triangular", 2),
            ("permuted-triangular", 2),
            ("arrow", 2),
            ("negative-definite", 2),
            ("saddle-point", 3),
            ("skew-symmetric", 2),
            ("blocks", 4),
            ("band", 3),
            ("not-square", 1),
            ("outer-product", 4),
            ("outer-square", 4),
            ("equal-rows", 4),
            ("equal-columns", 4),
            ("perturbed", 8),
            ("nearly-equal", 6),
            ("graded", 4),
            ("catalogue", 8),
            ("grid", 3),
            ("grid-removed", 3),
            ("grid-added", 3),
            ("grid-changed", 3),
            ("grid-permuted-rows", 2),
            ("grid-permuted", 2),
            ("grid-point-eliminated", 3),
            ("grid-wrapped", 3),
            ("grid-zero-diagonal", 2),
        ],
    },
    Axis {
        name: "problem",
        values: &[
            ("none", 0),
            ("poisson2d", 3),
            ("poisson3d", 3),
            ("hpcg", 1),
            ("convection3d", 2),
            ("jump3d", 2),
            ("elasticity2d", 2),
            ("elasticity3d", 2),
            ("navierstokes3d", 1),
            ("euler3d", 2),
            ("cahnhilliard3d", 1),
            ("fem2d", 1),
            ("ecology", 1),
            ("parabolic", 1),
            ("apache", 1),
            ("thermal", 1),
            ("circuit", 1),
            ("atmosmod", 1),
        ],
    },
    Axis {
        name: "size",
        values: &[
            ("0", 2),
            ("1", 3),
            ("2-8", 14),
            ("9-64", 20),
            ("65-400", 16),
            ("2049-4000", 2),
            ("of the file", 0),
        ],
    },
    Axis {
        name: "scale",
        values: &[
            ("as-is", 18),
            ("all", 4),
            ("rows", 4),
            ("columns", 4),
            ("both", 4),
            ("few", 4),
            ("zeros", 3),
            ("wide", 3),
            ("not-finite", 2),
        ],
    },
    Axis {
        name: "rhs",
        values: &[
            ("ones", 8),
            ("range", 6),
            ("random", 8),
            ("unit", 4),
            ("zero", 2),
            ("huge-200", 3),
            ("huge-300", 3),
            ("tiny-162", 3),
            ("tiny-200", 3),
            ("tiny-300", 3),
            ("mixed", 3),
            ("not-finite", 1),
            ("wrong-length", 1),
        ],
    },
    Axis {
        name: "guess",
        values: &[
            ("zero", 12),
            ("random", 8),
            ("ones", 3),
            ("huge", 4),
            ("mixed", 3),
            ("not-finite", 1),
            ("wrong-length", 1),
        ],
    },
    Axis {
        name: "sequence",
        values: &[("one", 10), ("several", 3), ("refactor", 3), ("stale", 2), ("other-matrix", 2)],
    },
    Axis {
        name: "preconditioner",
        values: &[
            ("auto", 3),
            ("none", 2),
            ("jacobi", 2),
            ("ic0", 2),
            ("ic(K)", 2),
            ("mic0", 1),
            ("mic(K)", 1),
            ("mic(K,OMEGA)", 1),
            ("dic", 1),
            ("ilu0", 2),
            ("ilu(K)", 2),
            ("milu0", 1),
            ("milu(K)", 1),
            ("milu(K,OMEGA)", 1),
            ("milu0-columns", 1),
            ("milu-columns(K)", 1),
            ("milu-columns(K,OMEGA)", 1),
            ("dilu", 1),
            ("ict(TOL)", 2),
            ("ilut(P,TOL)", 1),
            ("ilutp(P,TOL)", 1),
            ("ilut-saad(P,TOL)", 1),
            ("ilutp-saad(P,TOL)", 1),
            ("ilut-fill(FACTOR,TOL)", 1),
            ("ilutp-fill(FACTOR,TOL)", 1),
            ("bjacobi", 1),
            ("bjacobi(B)", 1),
            ("bic0", 1),
            ("bic0(B)", 1),
            ("bilu0", 1),
            ("bilu0(B)", 1),
        ],
    },
    Axis {
        name: "method",
        values: &[
            ("auto", 6),
            ("cg", 5),
            ("bicgstab", 5),
            ("gmres(0)", 1),
            ("gmres(1)", 1),
            ("gmres(few)", 2),
            ("gmres(30)", 2),
            ("gmres(n+)", 2),
            ("fgmres(0)", 1),
            ("fgmres(1)", 1),
            ("fgmres(few)", 2),
            ("fgmres(n+)", 2),
            ("minres", 5),
        ],
    },
    Axis { name: "reorder", values: &[("natural", 8), ("rcm", 3), ("amd", 3), ("nd", 2), ("colour", 3)] },
    Axis { name: "matching", values: &[("auto", 3), ("on", 2), ("off", 2)] },
    Axis { name: "precision", values: &[("f64", 3), ("mixed", 2)] },
    Axis { name: "layout", values: &[("auto", 3), ("slices", 2), ("rows", 2)] },
    Axis { name: "schedule", values: &[("auto", 2), ("levels", 1), ("point-to-point", 1)] },
    Axis { name: "recovery", values: &[("on", 3), ("off", 1)] },
    Axis {
        name: "threads",
        values: &[("1", 4), ("1+2", 12), ("1+3", 4), ("1+8", 2), ("2+3", 3), ("2+8", 1), ("3+8", 1)],
    },
    Axis {
        name: "rtol",
        values: &[
            ("1e-2", 1),
            ("1e-4", 1),
            ("1e-6", 1),
            ("1e-8", 3),
            ("1e-10", 2),
            ("1e-12", 2),
            ("1e-14", 2),
            ("0", 1),
        ],
    },
    Axis { name: "atol", values: &[("0", 6), ("1e-300", 1), ("1e-170", 1), ("1e-12", 1), ("1e-3", 1)] },
    Axis { name: "iterations", values: &[("0", 1), ("1", 1), ("few", 2), ("300", 12)] },
    Axis { name: "observer", values: &[("none", 9), ("stops", 1)] },
    Axis { name: "memory", values: &[("default", 19), ("tiny", 1)] },
];

/// A value of every axis, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    values: [u8; AXES.len()],
}

impl Of {
    /// The name of value `index`.
    pub fn name(self, index: usize) -> &'static str {
        AXES[self as usize].values[index].0
    }

    /// The index of a value by name.
    pub fn index(self, name: &str) -> usize {
        let found = AXES[self as usize].values.iter().position(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("{self:?} has no value {name}"))
    }
}

/// What this build and this call can sample.
#[derive(Debug, Clone, Copy)]
pub struct Available {
    /// Nested dissection is compiled in.
    pub dissection: bool,
    /// A folder with matrices was given.
    pub catalogue: bool,
}

/// How matrices of a family are made.
pub fn kind_of(family: &str) -> Kind {
    match family {
        "catalogue" => Kind::Catalogue,
        "outer-product" | "outer-square" | "equal-rows" | "equal-columns" | "perturbed" | "nearly-equal"
        | "graded" => Kind::Singular,
        grid if grid.starts_with("grid") => Kind::Grid,
        _ => Kind::Hostile,
    }
}

impl Choice {
    /// The value of an axis, by name.
    pub fn get(&self, axis: Of) -> &'static str {
        axis.name(self.index(axis as usize))
    }

    /// The value of an axis, by index.
    pub fn index(&self, axis: usize) -> usize {
        self.values[axis].into()
    }

    /// Draws a value for every axis; the family is one of `kinds`. Pairs that [`excluded`] names do not come up.
    pub fn draw(rng: &mut Rng, kinds: impl Fn(Kind) -> bool, available: Available) -> Self {
        let mut choice = Choice { values: [0; AXES.len()] };
        for (k, axis) in AXES.iter().enumerate() {
            let allowed = |v: usize| {
                missing(k, v, available).is_none()
                    && (k != Of::Family as usize || kinds(kind_of(axis.values[v].0)))
                    && (k > Of::Guess as usize
                        || (0..k).all(|earlier| excluded(earlier, choice.index(earlier), k, v).is_none()))
            };
            // Values of weight 0 are for where no other is left.
            let weights: Vec<u32> =
                (0..axis.values.len()).map(|v| if allowed(v) { axis.values[v].1 } else { 0 }).collect();
            let value = match weights.iter().all(|&weight| weight == 0) {
                true => (0..axis.values.len()).find(|&v| allowed(v)).unwrap_or(0),
                false => rng.weighted(weights.iter().copied()),
            };
            choice.values[k] = value as u8;
        }
        choice
    }

    /// Replaces the value of an axis; for small systems that nothing else depends on.
    pub fn with(mut self, axis: Of, value: &str) -> Self {
        self.values[axis as usize] = axis.index(value) as u8;
        self
    }

    /// `axis=value` for every axis.
    pub fn describe(&self) -> String {
        let values =
            AXES.iter().enumerate().map(|(k, a)| format!("{}={}", a.name, a.values[self.index(k)].0));
        values.collect::<Vec<_>>().join(" ")
    }
}

/// Why a value cannot be sampled at all, if so.
pub fn missing(axis: usize, value: usize, available: Available) -> Option<&'static str> {
    let is = |of: Of, name: &str| axis == of as usize && of.name(value) == name;
    if is(Of::Reorder, "nd") && !available.dissection {
        return Some("nested dissection is not in this build");
    }
    if (is(Of::Family, "catalogue") || is(Of::Size, "of the file")) && !available.catalogue {
        return Some("no catalogue was given");
    }
    None
}

/// Why two values of different axes cannot occur together, if so.
pub fn excluded(axis: usize, value: usize, other: usize, other_value: usize) -> Option<&'static str> {
    if axis > other {
        return excluded(other, other_value, axis, value);
    }
    let name = |k: usize, v: usize| AXES[k].values[v].0;
    let (first, second) = (name(axis, value), name(other, other_value));
    let axes = |a: Of, b: Of| axis == a as usize && other == b as usize;
    if axes(Of::Family, Of::Problem) {
        let fits = (kind_of(first) == Kind::Grid) == (second != "none");
        return (!fits).then_some("a problem of the gallery is part of grids alone");
    }
    if axes(Of::Family, Of::Size) {
        let fits = match kind_of(first) {
            Kind::Catalogue => second == "of the file",
            Kind::Singular => second == "2-8",
            Kind::Grid => ["9-64", "65-400", "2049-4000"].contains(&second),
            Kind::Hostile => second != "of the file",
        };
        return (!fits).then_some("the family has other sizes");
    }
    if axes(Of::Problem, Of::Size) {
        let fits = first == "none" || ["9-64", "65-400", "2049-4000"].contains(&second);
        return (!fits).then_some("grids have other sizes");
    }
    if axes(Of::Family, Of::Scale) {
        let breaks = kind_of(first) == Kind::Singular && ["few", "zeros", "wide"].contains(&second);
        return breaks.then_some("the matrix would no longer be singular");
    }
    let entries = axes(Of::Size, Of::Scale) || axes(Of::Size, Of::Rhs) || axes(Of::Size, Of::Guess);
    if entries && first == "0" && (second == "not-finite" || second == "unit") {
        return Some("there is no entry");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::solver::Preconditioning;

    const ALL: Available = Available { dissection: true, catalogue: true };

    #[test]
    fn axes_are_in_the_order_of_their_names() {
        let index = |of: Of| AXES[of as usize].name;
        assert_eq!(index(Of::Family), "family");
        assert_eq!(index(Of::Preconditioner), "preconditioner");
        assert_eq!(index(Of::Memory), "memory");
        assert_eq!(Of::Memory as usize + 1, AXES.len());
        for axis in AXES {
            assert_eq!(
                axis.values.iter().filter(|(name, _)| *name == axis.values[0].0).count(),
                1,
                "{}",
                axis.name
            );
        }
    }

    /// The library lists its preconditioners in the error of an unknown name; each is sampled.
    #[test]
    fn every_preconditioner_of_the_library_is_sampled() {
        let message = "?".parse::<Preconditioning>().unwrap_err().to_string();
        let (_, known) = message.split_once("known: ").unwrap();
        let mut depth = 0;
        let names = known.split(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        let mut names: Vec<&str> = names.map(str::trim).collect();
        let mut sampled: Vec<&str> =
            AXES[Of::Preconditioner as usize].values.iter().map(|&(name, _)| name).collect();
        names.sort_unstable();
        sampled.sort_unstable();
        assert_eq!(sampled, names);
    }

    #[test]
    fn every_problem_of_the_gallery_is_sampled() {
        let sampled: Vec<&str> =
            AXES[Of::Problem as usize].values[1..].iter().map(|&(name, _)| name).collect();
        let known: Vec<&str> = krylith::gallery::problems().iter().map(|p| p.name).collect();
        assert_eq!(sampled, known);
    }

    #[test]
    fn no_choice_contains_an_excluded_pair() {
        let available = Available { dissection: false, catalogue: true };
        for k in 0..5_000 {
            let choice = Choice::draw(&mut Rng::new(&[k]), |_| true, available);
            for i in 0..AXES.len() {
                assert_eq!(missing(i, choice.index(i), available), None, "{}", choice.describe());
                for j in 0..i {
                    let why = excluded(i, choice.index(i), j, choice.index(j));
                    assert_eq!(why, None, "{}", choice.describe());
                }
            }
        }
    }

    #[test]
    fn a_family_without_a_catalogue_is_another_one() {
        let without = Available { catalogue: false, ..ALL };
        for k in 0..2_000 {
            let choice = Choice::draw(&mut Rng::new(&[k]), |kind| kind != Kind::Singular, without);
            assert!(matches!(kind_of(choice.get(Of::Family)), Kind::Hostile | Kind::Grid));
        }
    }
}
