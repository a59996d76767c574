//! The file extensions that make a file a state.
//!
//! They are lower case and compared as written: `NOTES.MD` is not a state. The part before the
//! extension is the stem, which must not be empty: `.md` is not a state either.

/// A supported extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// `.md`: a prompt.
    Md,
    /// `.sh`: a script for Unix.
    Sh,
    /// `.bat`: a script for Windows.
    Bat,
    /// `.ps1`: a script for Windows.
    Ps1,
}

impl Extension {
    pub const ALL: [Self; 4] = [Self::Md, Self::Sh, Self::Bat, Self::Ps1];

    /// Returns the extension of a file name, if it is supported.
    pub fn of(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        Self::ALL.into_iter().find(|known| !stem.is_empty() && known.as_str() == extension)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::Sh => "sh",
            Self::Bat => "bat",
            Self::Ps1 => "ps1",
        }
    }

    pub const fn kind(self) -> StateKind {
        match self {
            Self::Md => StateKind::Prompt,
            Self::Sh | Self::Bat | Self::Ps1 => StateKind::Script,
        }
    }

    /// Returns whether the platform can run such a file.
    pub const fn runs_on(self, platform: Platform) -> bool {
        match (self, platform) {
            (Self::Md, _)
            | (Self::Sh, Platform::Unix)
            | (Self::Bat | Self::Ps1, Platform::Windows) => true,
            (Self::Sh, Platform::Windows) | (Self::Bat | Self::Ps1, Platform::Unix) => false,
        }
    }
}

/// A platform, which decides which scripts can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `.md` and `.sh`
    Unix,
    /// `.md`, `.bat` and `.ps1`
    Windows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// A text for an agent.
    Prompt,
    /// A program.
    Script,
}

/// Returns whether a file of this name is a state: it has a supported extension and is not a
/// README.
pub fn is_state(name: &str) -> bool {
    // A README describes the folder to people, in upper or lower case.
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    Extension::of(name).is_some() && !stem.eq_ignore_ascii_case("readme")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_have_stem_and_supported_extension() {
        let check = |name: &str, expected| assert_eq!(is_state(name), expected, "{name}");
        for state in ["START.md", "a.sh", "a.bat", "a.ps1", "v1.2.md", "README2.md"] {
            check(state, true);
        }
        for other in ["README.md", "readme.md", "ReadMe.sh", "a.MD", ".md", "md", "a.txt", "a", ""]
        {
            check(other, false);
        }
    }

    #[test]
    fn each_platform_runs_its_own_scripts() {
        let runs = |platform| Extension::ALL.map(|extension| extension.runs_on(platform));
        assert_eq!(runs(Platform::Unix), [true, true, false, false]);
        assert_eq!(runs(Platform::Windows), [true, false, true, true]);
    }
}
