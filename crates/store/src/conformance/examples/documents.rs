//! Examples of documents that are kept with jobs.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::retention::Forgot;
use crate::verbs::Submitted;
use crate::views::DocumentView;
use orchestrator_core::{Document, JobId, JobState, Key, NewJob};

fn document(content: &[u8]) -> Document {
    Document::new("a \u{e4}.txt", "text/plain; charset=utf-8", content)
}

fn keyed() -> NewJob {
    job().key(Key::new("k"))
}

pub(super) async fn a_document_is_kept_as_it_was_given(world: &World) {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let given = document(&bytes);
    let id = world.add(job().document(given.clone())).await;
    let empty = world.add(job().document(document(b""))).await;
    let none = world.add(job()).await;
    let view = world.job(id).await.document.expect("it has one");
    assert_eq!(view, DocumentView::of(&given));
    assert_eq!(
        (&*view.name, &*view.media_type, view.size),
        ("a \u{e4}.txt", "text/plain; charset=utf-8", 100_000)
    );
    let read = world.store.document(id).await.unwrap().expect("it is there");
    assert!(read == given, "every byte of it");
    assert_eq!(world.job(empty).await.document.map(|document| document.size), Some(0));
    assert_eq!(world.store.document(empty).await.unwrap(), Some(document(b"")));
    assert_eq!((world.job(none).await.document, world.store.document(none).await.unwrap()), (None, None));
    assert_eq!(world.store.document(JobId::from_parts(START, 0xbad)).await.unwrap(), None);
    let flow = world.add(NewJob::of_flow(plan(chain())).document(document(b"f"))).await;
    assert_eq!(world.store.document(flow).await.unwrap(), Some(document(b"f")));
    world.work_off(99).await;
    let listed = world.jobs().await.into_iter().map(|job| job.document.map(|document| document.size));
    assert_eq!(listed.collect::<Vec<_>>(), [Some(100_000), Some(0), None, Some(1)]);
}

pub(super) async fn another_document_is_a_conflict(world: &World) {
    let id = world.add(keyed().document(document(b"one"))).await;
    let same = Submitted::Existing { id, state: JobState::Pending };
    assert_eq!(world.submit(keyed().document(document(b"one"))).await, same);
    let renamed = Document::new("b.txt", "text/html", *b"one");
    assert_eq!(world.submit(keyed().document(renamed)).await, same, "its content counts, not its name");
    assert_eq!(world.submit(keyed().document(document(b"two"))).await, Submitted::Conflict { id });
    assert_eq!(world.submit(keyed()).await, Submitted::Conflict { id }, "none is another");
    let payload = keyed().document(document(b"one")).payload(json("2"));
    assert_eq!(world.submit(payload).await, Submitted::Conflict { id }, "the payload counts as well");
    let plain = world.add(job().key(Key::new("plain"))).await;
    let with = job().key(Key::new("plain")).document(document(b""));
    assert_eq!(world.submit(with).await, Submitted::Conflict { id: plain }, "an empty one is one");
    assert_eq!(world.store.document(id).await.unwrap(), Some(document(b"one")));
    assert_eq!(world.store.document(plain).await.unwrap(), None);
}

pub(super) async fn a_batch_sees_its_own_documents(world: &World) {
    let batch = [b"one".as_slice(), b"one", b"two"].map(|content| keyed().document(document(content)));
    let answers = world.store.submit(batch.to_vec()).await.unwrap();
    let id = answers[0].id();
    assert_eq!(answers[1], Submitted::Existing { id, state: JobState::Pending });
    assert_eq!(answers[2], Submitted::Conflict { id });
}

pub(super) async fn any_document_goes_with_a_key_of_the_flow(world: &World) {
    let derived = || Key { derived: true, ..Key::new("k") };
    let id = world.add(job().key(derived()).document(document(b"one"))).await;
    let other = world.submit(job().key(derived()).document(document(b"two"))).await;
    assert_eq!(other, Submitted::Existing { id, state: JobState::Pending }, "as any payload does");
    assert_eq!(world.store.document(id).await.unwrap(), Some(document(b"one")));
}

pub(super) async fn a_document_goes_with_its_job(world: &World) {
    let id = world.add(keyed().document(document(b"one"))).await;
    world.complete(&world.lease_one().await).await;
    let stays = world.add(job().document(document(b"stays"))).await;
    assert_eq!(world.forget(id).await, Forgot::Done);
    assert_eq!(world.store.document(id).await.unwrap(), None);
    assert_eq!(world.store.document(stays).await.unwrap(), Some(document(b"stays")));
    let again = world.add(keyed()).await;
    assert_eq!(world.job(again).await.document, None);
}
