//! The five steps. Each is an async function from an input to an output; both are plain types.
//!
//! A step may run more than once: its worker may vanish, or somebody recovers the job from it. So
//! each writes its files under fixed names, and writing them again changes nothing.

use orchestrator_core::Failure;
use orchestrator_worker::Work;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs;

/// Images are grey, 8 by 8, in the simplest format there is (PGM).
const HEADER: &[u8] = b"P5 8 8 255\n";
const PIXELS: usize = 64;

/// An error of the disk may pass, so the step is tried again.
fn disk(error: io::Error) -> Failure {
    Failure::transient(format!("cannot use the disk: {error}"))
}

/// How long a step works on one image.
async fn work_a_little() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[derive(Deserialize)]
pub struct Source {
    dir: PathBuf,
    images: usize,
    /// Whether the first attempt loses its connection.
    flaky: bool,
}

#[derive(Serialize)]
pub struct Downloaded {
    downloaded: usize,
    files: Vec<String>,
}

/// "Downloads" images: every fifth is broken, every fourth shows the same as the first.
pub async fn download(source: Source, work: Work) -> Result<Downloaded, Failure> {
    fs::create_dir_all(&source.dir).await.map_err(disk)?;
    let mut files = vec![];
    for n in 0..source.images {
        if source.flaky && work.attempt() == 1 && n == source.images / 2 {
            return Err(Failure::transient("the connection was cut"));
        }
        let shade = if n % 4 == 0 { 0 } else { (n * 37 % 256) as u8 };
        let pixels = if n % 5 == 3 { PIXELS / 2 } else { PIXELS };
        let name = format!("{n:03}.pgm");
        let image = [HEADER, &vec![shade; pixels]].concat();
        fs::write(source.dir.join(&name), image).await.map_err(disk)?;
        files.push(name);
        work_a_little().await;
    }
    Ok(Downloaded { downloaded: files.len(), files })
}

/// What the steps after it work on.
#[derive(Deserialize)]
pub struct Images {
    dir: PathBuf,
    files: Vec<String>,
}

#[derive(Serialize)]
pub struct Validated {
    valid: Vec<String>,
    broken: usize,
}

/// Keeps the images that are complete.
pub async fn validate(images: Images, _work: Work) -> Result<Validated, Failure> {
    let mut valid = vec![];
    for file in &images.files {
        let image = fs::read(images.dir.join(file)).await.map_err(disk)?;
        if image.strip_prefix(HEADER).is_some_and(|pixels| pixels.len() == PIXELS) {
            valid.push(file.clone());
        }
        work_a_little().await;
    }
    Ok(Validated { broken: images.files.len() - valid.len(), valid })
}

#[derive(Serialize)]
pub struct Deduplicated {
    unique: Vec<String>,
    duplicates: usize,
}

/// Keeps one of those that show the same.
pub async fn deduplicate(images: Images, _work: Work) -> Result<Deduplicated, Failure> {
    let (mut seen, mut unique) = (HashSet::new(), vec![]);
    for file in &images.files {
        if seen.insert(fs::read(images.dir.join(file)).await.map_err(disk)?) {
            unique.push(file.clone());
        }
        work_a_little().await;
    }
    Ok(Deduplicated { duplicates: images.files.len() - unique.len(), unique })
}

#[derive(Deserialize)]
pub struct ToLabel {
    dir: PathBuf,
    files: Vec<String>,
    /// A file that holds the shade from which on an image is bright.
    model: PathBuf,
}

/// File to label.
type Labels = BTreeMap<String, String>;

/// Says of each image whether it is dark or bright. Without a model no retry helps: somebody has to act.
pub async fn label(input: ToLabel, _work: Work) -> Result<Labels, Failure> {
    let model = fs::read_to_string(&input.model).await.map_err(|error| {
        Failure::permanent(format!(
            "no model at {}: {error}; put one there and recover",
            input.model.display()
        ))
    })?;
    let bright: u8 = model.trim().parse().map_err(|_| Failure::permanent("the model is not a number"))?;
    let mut labels = Labels::new();
    for file in input.files {
        let image = fs::read(input.dir.join(&file)).await.map_err(disk)?;
        let word = if image[HEADER.len()] >= bright { "bright" } else { "dark" };
        labels.insert(file, word.to_owned());
        work_a_little().await;
    }
    Ok(labels)
}

#[derive(Deserialize)]
pub struct ToStore {
    dir: PathBuf,
    labels: Labels,
    dataset: PathBuf,
}

#[derive(Serialize)]
pub struct Stored {
    stored: usize,
    manifest: PathBuf,
}

/// Sorts the images into the dataset, a directory per label, and writes down what is in it.
pub async fn store(input: ToStore, _work: Work) -> Result<Stored, Failure> {
    for (file, label) in &input.labels {
        let place = input.dataset.join(label);
        fs::create_dir_all(&place).await.map_err(disk)?;
        fs::copy(input.dir.join(file), place.join(file)).await.map_err(disk)?;
        work_a_little().await;
    }
    let manifest = input.dataset.join("manifest.json");
    let text = serde_json::to_string_pretty(&input.labels).map_err(io::Error::from).map_err(disk)?;
    write_whole(&manifest, &text).await.map_err(disk)?;
    Ok(Stored { stored: input.labels.len(), manifest })
}

/// Whoever finds the file finds all of it.
async fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).await?;
    fs::rename(draft, path).await
}
