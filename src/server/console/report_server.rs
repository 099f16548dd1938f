//! The report of an evaluation in a browser, and nothing of a memory.
//!
//! In: the directory that `ripplemem-eval --report` wrote, and an address of this machine. Out: the page at `/report/`,
//! and below it `report.json` and `questions/NAME.json` of the directory, which each request reads. Nothing else is
//! served: a name is one part of a path without a dot in front, no link is followed below the directory, and what is
//! not a file is not opened. It asks for no token, so it listens on loopback alone, and like all routes without a token
//! answers under the names of its address alone.

use std::{
    fs::File,
    io::{self, Read},
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    body::Body,
    extract::{Path as Named, State as Shared},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::routes::{HEADERS, page};
use crate::{
    ServeError,
    allowed_hosts::AllowedHosts,
    public_routes::with_host_check,
    v1::{HttpListener, connection_limit, listen},
};

/// The option of the address.
const KEY: &str = "--listen";
/// The path of the page.
const PAGE: &str = "/report";
/// The file with the figures.
const REPORT: &str = "report.json";
/// The folder with a file for each question.
const QUESTIONS: &str = "questions";
/// The ending of every file that is served.
const ENDING: &str = ".json";
/// No link is followed, and opening does not wait, as it would for a pipe.
const AS_IT_IS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Why a report is not served.
#[derive(Debug, thiserror::Error)]
pub enum ReportServerError {
    /// The directory has no report for the page.
    #[error("{path}: cannot be read; `ripplemem-eval FORMAT FILE --report DIRECTORY` writes it")]
    Missing {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others could reach the address.
    #[error(
        "{address} is reached from elsewhere, and a report asks for no token; name an address of this machine alone, \
         such as 127.0.0.1:8321"
    )]
    Elsewhere {
        /// The address.
        address: SocketAddr,
    },
    /// The address is taken or not of this machine.
    #[error(transparent)]
    Listen(#[from] ServeError),
}

/// A report that is served until this is dropped.
pub struct ReportServer {
    listening: HttpListener,
}

impl ReportServer {
    /// Where it is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }
}

/// Serves a report at a loopback address; port 0 takes a free one.
///
/// # Errors
/// [`ReportServerError`]: there is no report, or the address cannot be listened on.
pub fn serve_report(directory: &Path, address: SocketAddr) -> Result<ReportServer, ReportServerError> {
    if !address.ip().is_loopback() {
        return Err(ReportServerError::Elsewhere { address });
    }
    let folder = ReportFolder(Arc::from(directory));
    folder.report().map_err(|source| ReportServerError::Missing { path: directory.join(REPORT), source })?;
    let routes = move |address| {
        let hosts = AllowedHosts::of(address, &[]);
        with_host_check(page(PAGE), hosts.clone().for_pages()).merge(with_host_check(files(folder), hosts))
    };
    Ok(ReportServer { listening: listen(KEY, &address.to_string(), None, connection_limit(), routes)? })
}

fn files(folder: ReportFolder) -> Router {
    let report = |Shared(folder): Shared<ReportFolder>| file_response(move || folder.report());
    let question = |Shared(folder): Shared<ReportFolder>, Named(name): Named<String>| {
        file_response(move || folder.question(&name))
    };
    Router::new()
        .route(&format!("{PAGE}/{REPORT}"), get(report))
        .route(&format!("{PAGE}/{QUESTIONS}/{{name}}"), get(question))
        .with_state(folder)
}

/// What was read of a file; 404 where it is none of the report's.
async fn file_response(read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> Response {
    let Ok(Ok(bytes)) = tokio::task::spawn_blocking(read).await else {
        return (StatusCode::NOT_FOUND, HEADERS, "no such file in the report\n").into_response();
    };
    let mut response = Body::from(bytes).into_response();
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // It has the words of a conversation.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The directory of a report.
#[derive(Clone)]
struct ReportFolder(Arc<Path>);

impl ReportFolder {
    fn report(&self) -> io::Result<Vec<u8>> {
        read(openat(self.open()?, REPORT, AS_IT_IS, Mode::empty())?.into())
    }

    fn question(&self, name: &str) -> io::Result<Vec<u8>> {
        if !is_name(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let questions = openat(self.open()?, QUESTIONS, AS_IT_IS | OFlags::DIRECTORY, Mode::empty())?;
        read(openat(questions, name, AS_IT_IS, Mode::empty())?.into())
    }

    /// The directory itself may be a link, since the operator who named it chose it.
    fn open(&self) -> io::Result<OwnedFd> {
        Ok(openat(CWD, &*self.0, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// Whether a question's file may have this name, as `eval --report` makes them.
fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() > ENDING.len() && name.ends_with(ENDING) && !name.starts_with('.') && name.chars().all(is_of_name)
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, net::TcpStream, os::unix::fs::symlink};

    use super::*;

    const LOCAL: &str = "127.0.0.1:0";

    /// The status and the body of a request; the target is sent as it is.
    fn ask(address: SocketAddr, target: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    #[test]
    fn the_reports_own_files_are_served_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("report");
        let questions = directory.join("questions");
        fs::create_dir_all(questions.join("folder.json")).unwrap();
        for (path, text) in [
            (directory.join("report.json"), "figures"),
            (directory.join("report.md"), "page"),
            (directory.join("other.json"), "other"),
            (questions.join("conv-1-0.json"), "question"),
            (questions.join("conv-1-0.md"), "page"),
            (questions.join(".hidden.json"), "hidden"),
            (home.path().join("secret.json"), "secret"),
        ] {
            fs::write(path, text).unwrap();
        }
        symlink(home.path().join("secret.json"), questions.join("link.json")).unwrap();
        symlink("conv-1-0.json", questions.join("inside.json")).unwrap();
        let server = serve_report(&directory, LOCAL.parse().unwrap()).unwrap();
        let (address, ours) = (server.address(), server.address().to_string());
        assert_eq!(ask(address, "/report/report.json", &ours), (200, "figures".to_owned()));
        assert_eq!(ask(address, "/report/questions/conv-1-0.json", &ours), (200, "question".to_owned()));
        assert_eq!(ask(address, "/report/", &ours).0, 200);
        assert_eq!(ask(address, "/", &ours).0, 303);
        for target in [
            "/report/report.md",
            "/report/other.json",
            "/report/questions/",
            "/report/questions/conv-1-0.md",
            "/report/questions/.hidden.json",
            "/report/questions/folder.json",
            "/report/questions/link.json",
            "/report/questions/inside.json",
            "/report/questions/no.json",
            "/report/questions/../report.json",
            "/report/questions/../../secret.json",
            "/report/questions/..%2f..%2fsecret.json",
            "/report/questions/%2e%2e%2f%2e%2e%2fsecret.json",
            "/report/questions/..%5csecret.json",
            "/report/questions/conv-1-0.json%00.json",
            "/report/questions//etc/passwd.json",
            "/report/..%2fsecret.json",
            "/secret.json",
            "/console/",
            "/v1/banks",
            "/health",
        ] {
            let (status, body) = ask(address, target, &ours);
            assert_eq!(status, 404, "{target}: {body}");
            assert!(!body.contains("secret"), "{target}");
        }
        for target in ["/report/", "/report/report.json", "/report/questions/conv-1-0.json"] {
            assert_eq!(ask(address, target, "evil.example").0, 403, "{target}");
        }
        // Not even where the folder itself is a link, or the figures are.
        fs::rename(&questions, home.path().join("elsewhere")).unwrap();
        symlink(home.path().join("elsewhere"), &questions).unwrap();
        assert_eq!(ask(address, "/report/questions/conv-1-0.json", &ours).0, 404);
        fs::remove_file(directory.join("report.json")).unwrap();
        symlink(home.path().join("secret.json"), directory.join("report.json")).unwrap();
        assert_eq!(ask(address, "/report/report.json", &ours).0, 404);
    }

    #[test]
    fn what_cannot_be_served_is_an_error_with_a_next_step() {
        let home = tempfile::tempdir().unwrap();
        let missing = serve_report(home.path(), LOCAL.parse().unwrap()).err().unwrap().to_string();
        assert!(missing.contains("report.json") && missing.contains("eval FORMAT FILE --report"), "{missing}");
        fs::write(home.path().join("report.json"), "{}").unwrap();
        let elsewhere = serve_report(home.path(), "0.0.0.0:0".parse().unwrap()).err().unwrap().to_string();
        assert!(elsewhere.contains("127.0.0.1"), "{elsewhere}");
    }
}
