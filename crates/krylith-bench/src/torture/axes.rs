//! Values of all axes drawn for a case, and which pairs of values cannot occur together.

use super::rng::Rng;
pub use super::table::{AXES, COUNT, Of};
use std::str::FromStr;

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

/// A value of every axis, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    values: [u8; COUNT],
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
        | "graded" | "shifted-laplacian" => Kind::Singular,
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
        let mut choice = Choice { values: [0; COUNT] };
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

/// Values of one axis, of which a case must have one: `axis=value,value`.
#[derive(Debug, Clone)]
pub struct Filter {
    axis: usize,
    values: Vec<usize>,
}

impl Filter {
    /// Whether a choice has one of the values.
    pub fn allows(&self, choice: &Choice) -> bool {
        self.values.contains(&choice.index(self.axis))
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').ok_or("expected AXIS=VALUE,VALUE")?;
        let known = || AXES.iter().map(|axis| axis.name).collect::<Vec<_>>().join(", ");
        let axis =
            AXES.iter().position(|axis| axis.name == name).ok_or_else(|| format!("axes are {}", known()))?;
        let known = || AXES[axis].values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
        let find = |value: &str| {
            let found = AXES[axis].values.iter().position(|(name, _)| *name == value);
            found.ok_or_else(|| format!("values of {name} are {}", known()))
        };
        // Some names have commas themselves.
        let values = match find(values) {
            Ok(value) => vec![value],
            Err(_) => values.split(',').map(find).collect::<Result<_, _>>()?,
        };
        Ok(Filter { axis, values })
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

    const ALL: Available = Available { dissection: true, catalogue: true };

    #[test]
    fn axes_are_in_the_order_of_their_names() {
        let index = |of: Of| AXES[of as usize].name;
        assert_eq!(index(Of::Family), "family");
        assert_eq!(index(Of::Preconditioner), "preconditioner");
        assert_eq!(index(Of::Memory), "memory");
        assert_eq!(index(Of::NullSpace), "null-space");
        assert_eq!(index(Of::NearNull), "near-null");
        assert_eq!(Of::NearNull as usize + 1, AXES.len());
        for axis in AXES.iter() {
            assert_eq!(
                axis.values.iter().filter(|(name, _)| *name == axis.values[0].0).count(),
                1,
                "{}",
                axis.name
            );
        }
    }

    #[test]
    fn every_way_to_write_a_preconditioner_can_be_drawn() {
        let values = AXES[Of::Preconditioner as usize].values;
        for way in
            ["auto", "ssor", "ssor(OMEGA)", "ic0", "mic(K,OMEGA)", "ilutp-fill(FACTOR,TOL)", "bdilu(B)"]
        {
            assert_eq!(values.iter().filter(|(name, _)| *name == way).count(), 1, "{way}");
        }
        assert!(krylith::precond::registry::preconditioners().len() < values.len());
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
    fn filters_are_read_and_applied() {
        let filter: Filter = "rhs=ones,random".parse().unwrap();
        let choice = Choice::draw(&mut Rng::new(&[1]), |_| true, ALL);
        assert!(
            filter.allows(&choice.with(Of::Rhs, "random")) && !filter.allows(&choice.with(Of::Rhs, "zero"))
        );
        let comma: Filter = "preconditioner=ilut(P,TOL)".parse().unwrap();
        assert!(comma.allows(&choice.with(Of::Preconditioner, "ilut(P,TOL)")));
        for wrong in ["", "rhs", "rhs=none", "colour=red"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
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
