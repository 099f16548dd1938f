//! Runs what docker/ describes, without containers: its broker's settings, commands, health checks,
//! paths and ports, with Kafka's jars and the binary of this build.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer},
};
use serde_json::Value;

use super::{
    skipped::skip,
    support::{ripplemem, write},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn script(name: &str, arguments: &[&str]) -> Output {
    Command::new(root().join("scripts").join(name)).args(arguments).output().unwrap()
}

#[test]
fn files_are_as_their_schema_and_linter_say() {
    let output = script("check_docker", &[]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in stdout.lines().filter_map(|line| line.strip_prefix("skipped: ")) {
        skip("containers::files_are_as_their_schema_and_linter_say", line);
    }
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("ok: copied files"), "{stdout}");
}

#[test]
fn the_chart_is_as_helm_and_kubernetes_say_and_its_pipelines_are_valid() {
    let test = "containers::the_chart_is_as_helm_and_kubernetes_say_and_its_pipelines_are_valid";
    let home = tempfile::tempdir().unwrap();
    let output = script("check_helm", &["--to", home.path().to_str().unwrap()]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in stdout.lines().filter_map(|line| line.strip_prefix("skipped: ")) {
        skip(test, line);
    }
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let files = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.extension().is_some_and(|e| e == "toml")) {
        let checked = ripplemem(&["validate", "--file-only", file.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// The containers' names, ports and paths, mapped to this machine.
struct Outside {
    home: tempfile::TempDir,
    /// Text in a file or command, and its replacement here; longer texts first.
    replacements: Vec<(String, String)>,
}

impl Outside {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let held: Vec<TcpListener> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = held.iter().map(|l| l.local_addr().unwrap().port()).collect();
        let [broker, controller, host, metrics, model, http] = ports[..] else { panic!("six ports") };
        let here = |path: &str| home.path().join(path).to_str().unwrap().to_owned();
        let replacements = [
            // The published port: on the host it leads to 19092 in the container.
            ("HOST://127.0.0.1:9092", format!("HOST://127.0.0.1:{host}")),
            ("HOST://:19092", format!("HOST://127.0.0.1:{host}")),
            ("INSIDE://:9092", format!("INSIDE://127.0.0.1:{broker}")),
            ("CONTROLLER://:9093", format!("CONTROLLER://127.0.0.1:{controller}")),
            ("broker:9092", format!("127.0.0.1:{broker}")),
            ("broker:9093", format!("127.0.0.1:{controller}")),
            ("127.0.0.1:9092", format!("127.0.0.1:{host}")),
            ("0.0.0.0:8089", format!("127.0.0.1:{model}")),
            ("model:8089", format!("127.0.0.1:{model}")),
            ("0.0.0.0:9464", format!("127.0.0.1:{metrics}")),
            ("0.0.0.0:8321", format!("0.0.0.0:{http}")),
            ("127.0.0.1:9464", format!("127.0.0.1:{metrics}")),
            ("127.0.0.1:8321", format!("127.0.0.1:{http}")),
            ("/etc/ripplemem", here("etc")),
            ("/var/lib/ripplemem", here("lib")),
            ("/var/lib/kafka/data", here("data")),
        ];
        let replacements = replacements.map(|(there, here)| (there.to_owned(), here)).to_vec();
        Self { home, replacements }
    }

    fn read(&self, text: &str) -> String {
        self.replacements.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }

    /// Mounts a volume `HOST:CONTAINER:ro` of one file: copies it to where the container would see it.
    fn mount(&mut self, volume: &str) {
        let mut fields = volume.split(':');
        let (from, to) = (fields.next().unwrap(), fields.next().unwrap());
        if !from.starts_with('.') {
            return;
        }
        let file = root().join("docker").join(from);
        if to.starts_with("/etc/ripplemem") {
            let to = PathBuf::from(self.read(to));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            write(&to, self.read(&fs::read_to_string(file).unwrap()));
        } else {
            self.replacements.push((to.to_owned(), file.canonicalize().unwrap().to_str().unwrap().to_owned()));
        }
    }

    /// A command of the image, whose entry point is the binary.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.args(words.iter().map(|word| self.read(word))).stdin(Stdio::null());
        command
    }

    /// The health check of a container: `CMD ripplemem health ...`.
    fn healthy(&self, check: &[&str]) -> bool {
        let ["CMD", "ripplemem", arguments @ ..] = check else { panic!("{check:?}") };
        self.command(arguments).output().unwrap().status.success()
    }
}

/// A process that is killed when the test ends.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(300), "{what}: not within 300 s");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The broker of compose.yaml. Its environment variables become Kafka's properties.
fn broker(outside: &Outside, libraries: &str, environment: &Value) -> KilledAtEnd {
    let properties: String = environment
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "KAFKA_HEAP_OPTS")
        .map(|(name, value)| {
            let name = name.strip_prefix("KAFKA_").unwrap().to_lowercase().replace('_', ".");
            format!("{name}={}\n", outside.read(value.as_str().unwrap()))
        })
        .collect();
    let file = write(&outside.home.path().join("server.properties"), properties);
    let java = || {
        let mut java = Command::new("java");
        java.args(["-cp", libraries]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        java
    };
    let format = ["kafka.tools.StorageTool", "format", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config"];
    assert!(java().args(format).arg(&file).status().unwrap().success(), "the storage is not formatted");
    let heap = environment["KAFKA_HEAP_OPTS"].as_str().unwrap().split(' ');
    KilledAtEnd(java().args(heap).arg("kafka.Kafka").arg(&file).spawn().unwrap())
}

#[test]
fn every_command_of_the_containers_runs_outside_of_them() {
    let test = "containers::every_command_of_the_containers_runs_outside_of_them";
    let compose = script("check_docker", &["--json"]);
    let fetched = script("broker", &["fetch"]);
    for output in [&compose, &fetched] {
        if matches!(output.status.code(), Some(4 | 5)) {
            return skip(test, String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no message"));
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let compose: BTreeMap<String, Value> = serde_json::from_slice(&compose.stdout).unwrap();
    let libraries = format!("{}/*", String::from_utf8(fetched.stdout).unwrap().trim());
    let services = &compose["services"];
    let mut outside = Outside::new();
    for service in ["service", "loader"] {
        words(&services[service]["volumes"]).into_iter().for_each(|volume| outside.mount(volume));
    }

    // The image's health check is a script that Kafka's jars lack: ask the same with our client.
    let check = words(&services["broker"]["healthcheck"]["test"]);
    let ["CMD", "/opt/kafka/bin/kafka-broker-api-versions.sh", "--bootstrap-server", address] = check[..] else {
        panic!("{check:?}")
    };
    let _broker = broker(&outside, &libraries, &services["broker"]["environment"]);
    let asking: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", outside.read(address)).set("group.id", "x").create().unwrap();
    until("the broker", || asking.fetch_metadata(None, Duration::from_secs(1)).is_ok());

    let dockerfile = fs::read_to_string(root().join("docker/Dockerfile")).unwrap();
    let json = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let of = |word: &str| dockerfile.lines().find_map(|line| line.trim().strip_prefix(word)).unwrap();
    assert_eq!(json(of("ENTRYPOINT ")), serde_json::json!(["ripplemem"]));
    let commands: Vec<Value> = dockerfile.lines().filter_map(|l| l.trim().strip_prefix("CMD ")).map(json).collect();
    let [health, run] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(run, &services["service"]["command"], "the image's default command is the one of compose.yaml");

    let service = KilledAtEnd(outside.command(&words(run)).stderr(Stdio::null()).spawn().unwrap());
    let ready = words(&services["service"]["healthcheck"]["test"]);
    until("the service", || outside.healthy(&ready));
    assert!(outside.healthy(&[&["CMD"], &words(health)[..]].concat()));
    let mut exposed = of("EXPOSE ").split(' ');
    assert!(words(&services["service"]["ports"]).iter().all(|published| exposed.any(|port| published.ends_with(port))));

    let loaded = outside.command(&words(&services["loader"]["command"])).output().unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    // The question in the header of compose.yaml, word for word.
    let head = fs::read_to_string(root().join("docker/compose.yaml")).unwrap();
    let head: String = head.lines().map_while(|l| l.strip_prefix('#')).collect::<String>().replace("\\ ", "");
    let (_, question) = head.split_once("exec service ripplemem ask ").unwrap();
    let (_, quoted) = question.split_once('"').unwrap();
    let (question, rest) = quoted.split_once('"').unwrap();
    let rest: Vec<&str> = rest.split_whitespace().take(4).collect();
    let ask = || outside.command(&[&["ask", question], &rest[..]].concat()).output().unwrap();
    until("the answer", || String::from_utf8_lossy(&ask().stdout).contains("Elias"));
    // The answer in words, by the model of another container.
    let model = &services["model"];
    assert_eq!(words(&model["entrypoint"]), ["scripted-model"]);
    let mut scripted = Command::new(env!("CARGO_BIN_EXE_scripted-model"));
    scripted.args(words(&model["command"]).iter().map(|word| outside.read(word)));
    let _scripted = KilledAtEnd(scripted.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let answer = || outside.command(&[&["ask", question], &rest[..], &["--answer"]].concat()).output().unwrap();
    until("the answer in words", || String::from_utf8_lossy(&answer().stdout).contains("  ["));

    // On the host, the pipeline files expect the broker at this address.
    let pipeline = fs::read_to_string(root().join("pipelines/kafka.toml")).unwrap();
    assert!(pipeline.contains("127.0.0.1:9092"));
    let file = write(&outside.home.path().join("host.toml"), outside.read(&pipeline));
    let lag = outside.command(&["lag", "--pipeline", file.to_str().unwrap()]).output().unwrap();
    assert!(lag.status.success(), "{}", String::from_utf8_lossy(&lag.stderr));

    let mut service = service;
    assert!(Command::new("kill").arg(service.0.id().to_string()).status().unwrap().success());
    let grace = Instant::now();
    assert!(service.0.wait().unwrap().success());
    assert_eq!(services["service"]["stop_grace_period"], "30s");
    assert!(grace.elapsed() < Duration::from_secs(30));
}

/// The commands of docs/install.md: a token, a service that is healthy, and a request with the token.
#[test]
fn the_recipe_of_a_container_with_a_token_runs_outside_of_it() {
    let page = fs::read_to_string(root().join("docs/install.md")).unwrap();
    let of_image = |start: &str| -> Vec<String> {
        let line = page.lines().find(|line| line.starts_with(start)).unwrap();
        let (_, command) = line.split_once(" ripplemem:latest ").unwrap();
        command.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()
    };
    let mut outside = Outside::new();
    outside.mount("./service.toml:/etc/ripplemem/service.toml:ro");
    fs::create_dir_all(outside.read("/var/lib/ripplemem")).unwrap();
    let command = |words: &[String]| outside.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let made = command(&of_image("docker run --rm -v memory:")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let run = of_image("docker run -d ");
    let _service = KilledAtEnd(command(&run).stderr(Stdio::null()).spawn().unwrap());
    let dockerfile = fs::read_to_string(root().join("docker/Dockerfile")).unwrap();
    let health =
        dockerfile.lines().find_map(|line| line.trim().strip_prefix("CMD [\"ripplemem\", \"health\"")).unwrap();
    let health: Value = serde_json::from_str(&format!("[\"CMD\", \"ripplemem\", \"health\"{health}")).unwrap();
    until("the service", || outside.healthy(&words(&health)));
    let request = page.lines().find(|line| line.starts_with("curl ") && line.contains("/v1/banks")).unwrap();
    let url = request.split(' ').find(|word| word.starts_with("http://")).unwrap();
    let ask = |token: &str| {
        let header = format!("Authorization: Bearer {token}");
        let curl = Command::new("curl").args(["-s", &outside.read(url), "-H", &header]).output().unwrap();
        String::from_utf8(curl.stdout).unwrap()
    };
    until("an answer", || ask(&token).trim() == "{\"banks\":[]}");
    assert!(ask("wrong").contains("401"));
}
