//! An image built by `buildah` of the repository's Dockerfile, in a storage that goes with the test.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{names, sources};
use crate::support::program::{RUN_MAX, Ran, run};
use crate::support::repository::root;

/// Longest a build may take. Cargo finds nearly everything built; where it does not, the crate itself is
/// compiled once more.
const BUILD_MAX: Duration = Duration::from_mins(5);

/// A built image.
#[derive(Debug)]
pub(super) struct Image {
    storage: TempDir,
    root: PathBuf,
    base: PathBuf,
}

impl Image {
    /// Builds with this real key in the environment.
    pub(super) async fn build(real_key: &str) -> Self {
        let storage = storage();
        let target = storage.path().join("target");
        let profile = seed(&target);
        let mut bases = Command::new(sources("image").join("bases"));
        bases.arg(storage.path()).arg(&target);
        run(bases, RUN_MAX).await.ok();
        let mut build = Command::new(sources("image").join("build"));
        build
            .arg(storage.path())
            .arg(&target)
            .arg(profile)
            .arg(root())
            .env("STRIPE_SECRET_KEY", real_key);
        run(build, BUILD_MAX).await.ok();
        let root = mounted(&storage, "localhost/spendcap").await;
        let base = mounted(&storage, "localhost/runtime").await;
        Self {
            storage,
            root,
            base,
        }
    }

    /// All that its manifest, configuration and history say.
    pub(super) async fn settings(&self) -> Value {
        let inspect = ["inspect", "--type", "image", "localhost/spendcap"];
        buildah(&self.storage, &inspect).await.json()
    }

    /// A new volume: it takes its owner from the image.
    pub(super) fn volume(&self) -> PathBuf {
        let owner = fs::metadata(self.root.join("var/lib/spendcap")).unwrap();
        let volume = self.storage.path().join("volume");
        fs::create_dir(&volume).unwrap();
        chown(&volume, Some(owner.uid()), Some(owner.gid())).unwrap();
        volume
    }

    /// A program of the image, run in it as its configuration says.
    pub(super) fn program(&self, config: &Value, volume: &Path, words: &[String]) -> Command {
        let text = |name: &str| config[name].as_str().unwrap();
        let mut command = Command::new(sources("image").join("run"));
        command
            .arg(&self.root)
            .arg(volume)
            .args(config["Volumes"].as_object().unwrap().keys())
            .args([text("WorkingDir"), text("User")])
            .args(words);
        command
    }

    /// Fails where the image has more than `bytes_max` above its base.
    pub(super) fn size_above_its_base(&self, bytes_max: u64) {
        let (whole, base) = (bytes(&self.root), bytes(&self.base));
        let above = whole - base;
        assert!(
            above > 0 && above <= bytes_max,
            "{above} bytes above a base of {base}"
        );
    }
}

/// What the build of this folder is sent, at its top.
pub(super) async fn contents(context: &Path) -> Vec<String> {
    let storage = storage();
    let build = ["build", "--isolation", "chroot", "--tag", "localhost/seen"];
    let folder = context.to_str().unwrap();
    buildah(&storage, &[&build[..], &[folder]].concat()).await;
    let mut seen = names(&mounted(&storage, "localhost/seen").await);
    seen.sort();
    seen
}

/// Beside the build's own files: links into those must be possible.
fn storage() -> TempDir {
    assert!(
        rustix::process::geteuid().is_root(),
        "building an image needs root: run ./test as root"
    );
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Puts what is compiled already where cargo looks in the image's build, and returns the profile's name.
/// Crates are linked; what the build may write anew is copied, so that this test's own binary stays.
fn seed(target: &Path) -> &'static str {
    let built = Path::new(env!("CARGO_BIN_EXE_spendcap")).parent().unwrap();
    let (folder, profile) = match built.file_name().and_then(|name| name.to_str()) {
        Some("debug") => ("debug", "dev"),
        Some("release") => ("release", "release"),
        other => panic!("not a profile of cargo's: {other:?}"),
    };
    let seeded = target.join(folder);
    let script = "set -eu; mkdir -p \"$2\"; cp -a \"$1/.fingerprint\" \"$2\"; \
                  cp -al \"$1/deps\" \"$1/build\" \"$2\"; rm -f \"$2\"/deps/*spendcap-*; \
                  cp -a \"$1\"/deps/*spendcap-* \"$2/deps\"";
    let copied = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([built, &seeded])
        .status();
    assert!(copied.unwrap().success(), "{}", built.display());
    profile
}

/// Where the image's files are, which `buildah mount` of a container shows.
async fn mounted(storage: &TempDir, image: &str) -> PathBuf {
    let from = ["from", "--pull-never", image];
    let container = buildah(storage, &from).await.stdout;
    let root = buildah(storage, &["mount", container.trim()]).await.stdout;
    PathBuf::from(root.trim())
}

async fn buildah(storage: &TempDir, arguments: &[&str]) -> Ran {
    let folder = |name: &str| storage.path().join(name);
    fs::create_dir_all(folder("tmp")).unwrap();
    let mut command = Command::new("buildah");
    command
        .args(["--storage-driver", "vfs", "--root"])
        .arg(folder("root"))
        .arg("--runroot")
        .arg(folder("run"))
        .args(arguments)
        .env("TMPDIR", folder("tmp"));
    run(command, RUN_MAX).await.ok()
}

/// The sum of the sizes of all files.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            bytes(&entry.path())
        } else {
            metadata.len()
        }
    });
    sizes.sum()
}
