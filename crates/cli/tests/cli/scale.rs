//! Many agents at once; the heavy version is in `tests/scale`.

use crate::harness::Project;

#[test]
fn two_hundred_forked_workers_complete() {
    let project = Project::of(&[
        (
            "wf/START.sh",
            "for i in $(seq 200); do echo \"<fork next='END' n='$i'>WORKER</fork>\"; done",
        ),
        ("wf/WORKER.sh", "echo \"<result>$RAYMOND_ATTR_N</result>\""),
        ("wf/END.sh", "echo '<result>done</result>'"),
    ]);
    let output = project.raymond("run wf --json --quiet");
    let results = &output.json()["results"];
    assert_eq!((output.code(), results.as_object().unwrap().len()), (0, 201));
    for n in 1..=200 {
        assert_eq!(results[format!("main_worker{n}")], n.to_string());
    }
}
