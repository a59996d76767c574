//! Sorts problems of a document that several checks have found.

use crate::crayfish::problem::Problem;
use crate::crayfish::problem_code::ProblemCode;

/// Sorts by the steps of the document; within a step the order of discovery stays.
pub fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_cached_key(|problem| {
        // The entry that counts the others has no place in the document and stays last.
        (problem.code == ProblemCode::MoreProblems, step(&problem.path).collect::<Vec<_>>())
    });
    problems
}

/// Iterates over the lists and positions that lead to the step of a pointer.
fn step(pointer: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut tokens = pointer.split('/').skip(1);
    std::iter::from_fn(move || {
        let list = tokens.next()?;
        let list = ["steps", "then", "else", "body"].iter().position(|known| *known == list)?;
        Some((list, tokens.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_sorted_like_their_steps() {
        let problem = |path: &str| Problem::new(path, ProblemCode::WrongType, "x");
        let more = Problem::more(5);
        let found = [
            "/steps/10/id",
            "/steps/2/then/0/shell",
            "/steps/2/else/0/io",
            "/steps/2/schema/type",
            "/steps/2/id",
            "/env",
            "/steps",
            "/steps/2/then/0/body/0/id",
        ];
        let expected = [
            "/env",
            "/steps",
            "/steps/2/schema/type",
            "/steps/2/id",
            "/steps/2/then/0/shell",
            "/steps/2/then/0/body/0/id",
            "/steps/2/else/0/io",
            "/steps/10/id",
        ];
        let mut problems: Vec<Problem> = found.into_iter().map(problem).collect();
        problems.insert(3, more.clone());
        let expected: Vec<Problem> = expected.into_iter().map(problem).chain([more]).collect();
        assert_eq!(in_order(problems), expected);
    }
}
