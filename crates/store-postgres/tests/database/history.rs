//! The history views: each row says what the catalog says, to a tool that knows nothing of ours.

use orchestrator_core::flow::def::BackoffDef;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{
    ErrorClass, Failure, JobId, Json, Key, Meta, Millis, NewJob, Outcome, Priority, TaskId, Timestamp,
    WorkerId,
};
use orchestrator_store::packed::{Ids, SALT_BITS, index_of};
use orchestrator_store::{
    AttemptEnd, Catalog, Clock, Command, JobFilter, JobView, LeaseAsk, Leased, ManualClock, Page, Settlement,
    Store, SweepAsk, TaskView,
};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::{GUARDED_USER, Server};
use serde_json::{Value, json};
use std::sync::Arc;

/// A store on a clock of ours, and its database.
struct World {
    store: Arc<PostgresStore>,
    clock: Arc<ManualClock>,
    database: String,
}

impl World {
    async fn new() -> World {
        let url = Server::shared().database();
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_800_000_000_123)));
        let options = Options { clock: Some(clock.clone()), ..Options::new(&url) };
        let store = PostgresStore::open(options).await.unwrap();
        World { store, clock, database: url.rsplit('/').next().unwrap().to_owned() }
    }

    async fn add(&self, job: NewJob) -> JobId {
        self.clock.advance(Millis(7));
        self.store.submit(vec![job]).await.unwrap()[0].id()
    }

    async fn take(&self, handler: &str) -> Leased {
        let ask = LeaseAsk {
            worker: WorkerId::new("w"),
            queues: vec!["default".into()],
            handlers: vec![handler.into()],
            slots: 1,
            ttl: Millis::mins(10),
            hold: Millis(0),
        };
        self.store.lease(ask).await.unwrap().tasks.pop().expect("something is in line")
    }

    /// Runs the next task of a handler for so long, to an end.
    async fn run(&self, handler: &str, took: u64, outcome: Outcome) {
        let leased = self.take(handler).await;
        self.clock.advance(Millis(took));
        self.store.settle(vec![Settlement { held: leased.held(), outcome, jitter: 0.0 }]).await.unwrap();
    }

    /// Lets time pass until what waits for a moment is in line.
    async fn pass(&self, span: Millis) {
        self.clock.advance(span);
        while !self.store.leads().await {
            tokio::task::yield_now().await;
        }
        self.store.expired(SweepAsk { limit: 100, jitter: 0.0 }).await.unwrap();
    }

    /// The rows of a query, as JSON, with moments in milliseconds. Asked by another role, in a session of no settings.
    fn rows(&self, from: &str) -> Vec<Value> {
        let sql = format!(
            "SELECT to_jsonb(h) || jsonb_build_object(
                'created_at', (extract(epoch FROM created_at) * 1000)::bigint,
                'updated_at', (extract(epoch FROM updated_at) * 1000)::bigint,
                'completed_at', (extract(epoch FROM completed_at) * 1000)::bigint)
             FROM orchestrator.{from} ORDER BY id"
        );
        let text = Server::shared().sql(&self.database, &sql);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn all(&self) -> Vec<JobView> {
        self.store.list(JobFilter::default(), Page { after: None, limit: 100 }).await.unwrap()
    }

    /// The tasks of a job that came to life or are over, items among them.
    async fn tasks(&self, job: &JobView) -> Vec<TaskView> {
        let mut tasks = job.tasks.clone();
        for task in &job.tasks {
            let group = TaskId { job: job.id, index: task.index };
            tasks.extend(self.store.items(group, None, 100).await.unwrap());
        }
        tasks.retain(|task| task.input.is_some() || task.ended.is_some());
        tasks.sort_by_key(|task| task.index);
        tasks
    }

    /// Compares all rows of both views with what the catalog says.
    async fn check(&self) {
        let jobs = self.all().await;
        let runs = self.rows("flow_run_history h");
        assert_eq!(runs.len(), jobs.len());
        let mut executions = self.rows("task_execution_history h").into_iter();
        for (job, run) in jobs.iter().zip(&runs) {
            check_run(job, run);
            let tasks = self.tasks(job).await;
            let own: Vec<Value> = executions.by_ref().take(tasks.len()).collect();
            for (task, row) in tasks.iter().zip(&own) {
                check_task(job, task, row);
            }
            assert_eq!(self.rows(&format!("tasks_of('{}') h", job.id)), own);
        }
        assert_eq!(executions.next(), None);
    }

    fn run_of(&self, id: JobId) -> Value {
        let found = self.rows(&format!("flow_run_history h WHERE id = orchestrator.job_seq('{id}')"));
        let [row] = &found[..] else { panic!("{found:?}") };
        assert_eq!(row["run_id"], json!(id.to_string()));
        row.clone()
    }

    fn task_of(&self, id: JobId, name: &str) -> Value {
        self.rows(&format!("tasks_of('{id}') h WHERE task_id = '{name}'")).remove(0)
    }
}

/// What jsonb makes of it: it has no character zero.
fn value(json: &Option<Json>) -> Value {
    let shown = |json: &Json| serde_json::from_str(&json.as_str().replace("\\u0000", "\\ufffd")).unwrap();
    json.as_ref().map_or(Value::Null, shown)
}

fn moment(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| json!(at.as_millis()))
}

fn check_run(job: &JobView, row: &Value) {
    let word = |name: &str| row[name].as_str().unwrap_or_default();
    assert_eq!(word("run_id"), job.id.to_string());
    let name = job.flow.as_ref().map_or(&job.task().spec.handler, |flow| &flow.name);
    assert_eq!(word("flow_id"), &**name);
    assert_eq!(word("tenant_id"), &*job.tenant);
    assert_eq!(word("status"), job.state.as_str(), "{job:?}");
    let input = value(&Some(job.payload.clone()));
    let field =
        |name: &str| input[name].as_str().map(str::to_owned).or(input[name].as_u64().map(|n| n.to_string()));
    assert_eq!(word("user_id"), field("user_id").unwrap_or_default());
    assert_eq!(word("correlation_id"), field("correlation_id").unwrap_or(job.id.to_string()));
    assert_eq!(row["input_data"], input);
    assert_eq!(row["output_data"], value(&job.output), "{job:?}");
    let context = &row["execution_context"];
    assert_eq!(context["kind"], if job.flow.is_some() { "flow" } else { "queue" });
    assert_eq!(context["flow_version"], json!(job.flow.as_ref().map(|flow| flow.version)));
    assert_eq!(context["priority"], job.priority.as_str());
    assert_eq!(context["key"], json!(job.key));
    assert_eq!(context["previous_run_id"], json!(job.previous.map(|id| id.to_string())));
    assert_eq!(row["created_at"], moment(Some(job.created)));
    assert_eq!(row["completed_at"], moment(job.ended));
    assert!(row["updated_at"].as_i64() >= row["created_at"].as_i64().max(row["completed_at"].as_i64()));
    if job.reason.is_some() {
        assert_eq!(row["error_message"], json!(job.reason));
    }
}

fn check_task(job: &JobView, task: &TaskView, row: &Value) {
    assert_eq!(index_of(row["id"].as_i64().unwrap()), task.index);
    assert_eq!(row["run_id"], json!(job.id.to_string()));
    assert_eq!(row["task_id"], json!(task.name));
    assert_eq!(row["handler"], json!(task.spec.handler));
    assert_eq!(row["status"], task.state.as_str(), "{task:?}");
    assert_eq!(row["attempts"], json!(task.counters.attempt), "{task:?}");
    assert_eq!(row["input_data"], value(&task.input), "{task:?}");
    assert_eq!(row["output_data"], value(&task.output), "{task:?}");
    let last = task.history.iter().rev().find(|record| record.how != AttemptEnd::Stale);
    assert_eq!(row["error_message"], json!(last.map(|record| &record.message)));
    assert_eq!(row["completed_at"], moment(task.ended));
    assert!(row["created_at"].as_i64() >= Some(job.created.as_millis()), "{row}");
    assert!(row["updated_at"].as_i64() >= row["created_at"].as_i64().max(row["completed_at"].as_i64()));
}

fn task(name: &str) -> Task {
    Task::new(name, name).backoff(BackoffDef { jitter_percent: Some(0), ..BackoffDef::default() })
}

fn plan(flow: Flow) -> Arc<Plan> {
    Arc::new(flow.plan().unwrap())
}

fn payload(value: Value) -> Json {
    Json::of(&value).unwrap()
}

fn done(value: Value) -> Outcome {
    Outcome::Completed(payload(value))
}

fn failed(class: ErrorClass, message: &str) -> Outcome {
    Outcome::Failed(Failure::new(class, message))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_show_what_the_catalog_shows() {
    let world = World::new().await;
    let chain = plan(
        Flow::new("orders")
            .task(task("fetch"))
            .task(task("fixed").with(json!({"note": "a\u{0}b", "n": 1})))
            .task(
                task("pay")
                    .needs(["fetch"])
                    .with(json!({"total": "{{ tasks.fetch.output.total }}"}))
                    .retries(2),
            )
            .task(task("thank").needs(["pay"]).when("input.polite")),
    );
    let job = |polite: bool| {
        let input = json!({"user_id": "ann", "correlation_id": "c-1", "polite": polite});
        NewJob::of_flow(chain.clone()).payload(payload(input)).tenant("acme").priority(Priority::High)
    };
    let good = world.add(job(false).key(Key::new("k"))).await;
    world.check().await;
    world.run("fetch", 20, done(json!({"total": 5}))).await;
    world.run("fixed", 3, done(json!([1]))).await;
    world.run("pay", 30, failed(ErrorClass::Network, "no route\u{0}")).await;
    world.check().await;
    assert_eq!(world.task_of(good, "pay")["status"], "retrying");
    world.pass(Millis::secs(2)).await;
    world.check().await;
    let running = world.take("pay").await;
    world.check().await;
    world.clock.advance(Millis(1500));
    world
        .store
        .settle(vec![Settlement { held: running.held(), outcome: done(json!("paid")), jitter: 0.0 }])
        .await
        .unwrap();
    let run = world.run_of(good);
    assert_eq!(
        (&run["status"], &run["user_id"], &run["error_message"]),
        (&json!("completed"), &json!("ann"), &Value::Null)
    );
    assert_eq!(run["output_data"], json!({"fixed": [1], "thank": null}));
    let pay = world.task_of(good, "pay");
    assert_eq!((&pay["execution_time_ms"], &pay["attempts"]), (&json!(1500), &json!(2)));
    assert_eq!(world.task_of(good, "fetch")["execution_time_ms"], 20);
    assert_eq!(world.task_of(good, "thank")["status"], "skipped");
    assert_eq!(world.task_of(good, "fixed")["input_data"], json!({"note": "a\u{FFFD}b", "n": 1}));

    let bad = world.add(job(true).rerun_of(good)).await;
    world.run("fetch", 1, done(json!({"total": 6}))).await;
    world.run("pay", 1, failed(ErrorClass::Permanent, "no money")).await;
    world.run("fixed", 1, done(json!(null))).await;
    let run = world.run_of(bad);
    assert_eq!((&run["status"], &run["error_message"]), (&json!("failed"), &json!("no money")));
    assert_eq!(run["execution_context"]["previous_run_id"], json!(good.to_string()));

    let stopped = world.add(job(true)).await;
    world.store.control(vec![Command::Pause(stopped).into()]).await.unwrap();
    world.store.control(vec![Command::Cancel(stopped).into()]).await.unwrap();
    assert_eq!(world.run_of(stopped)["status"], "cancelled");
    world.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_shows_its_items_by_name() {
    let world = World::new().await;
    let flow = Flow::new("lists")
        .task(task("each").for_each("{{ input.list }}").concurrency(2))
        .task(task("other").for_each(json!([true])).needs(["each"]))
        .output(json!({"all": "{{ tasks.each.output }}"}));
    let plan = plan(flow);
    let with = |list: Value| NewJob::of_flow(plan.clone()).payload(payload(json!({ "list": list })));
    let job = world.add(with(json!([10, 20, 30]))).await;
    world.check().await;
    assert_eq!(world.task_of(job, "each[2]")["status"], "pending");
    for n in 0..3 {
        world.run("each", 1, done(json!(n))).await;
        world.check().await;
    }
    let all = world.task_of(job, "each")["output_data"].clone();
    assert_eq!(all.as_array().map(Vec::len), Some(3));
    world.run("other", 1, done(json!("o"))).await;
    assert_eq!(world.run_of(job)["output_data"], json!({ "all": all }));
    assert_eq!(world.task_of(job, "other[0]")["input_data"], json!(true));
    world.check().await;
    world.add(with(json!([]))).await;
    world.run("other", 1, done(json!("o"))).await;
    world.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_queues_are_runs_of_their_handler() {
    let world = World::new().await;
    let first = world.add(NewJob::new("work").payload(payload(json!("plain"))).key(Key::new("k"))).await;
    world.check().await;
    assert_eq!(world.task_of(first, "main")["status"], "queued");
    let held = world.take("work").await.held();
    world.check().await;
    world.clock.advance(Millis(40));
    let settle = |held, outcome| world.store.settle(vec![Settlement { held, outcome, jitter: 0.0 }]);
    settle(held, failed(ErrorClass::Network, "busy")).await.unwrap();
    world.check().await;
    assert_eq!(
        (&world.run_of(first)["status"], &world.run_of(first)["error_message"]),
        (&json!("running"), &Value::Null)
    );
    world.pass(Millis::mins(2)).await;
    world.run("work", 11, failed(ErrorClass::Permanent, "never")).await;
    world.check().await;
    assert_eq!(
        (&world.run_of(first)["status"], &world.run_of(first)["error_message"]),
        (&json!("failed"), &json!("never"))
    );
    assert_eq!(world.task_of(first, "main")["execution_time_ms"], 11);

    // A write that comes too late is not the last error.
    settle(held, done(json!(1))).await.unwrap();
    world.check().await;

    let paused =
        world.add(NewJob::new("work").payload(payload(json!({"user_id": 7}))).key(Key::new("k"))).await;
    world.clock.advance(Millis(5));
    world.store.control(vec![Command::Pause(paused).into()]).await.unwrap();
    world.check().await;
    assert_eq!(world.run_of(paused)["user_id"], "7");
    assert_eq!(world.task_of(paused, "main")["created_at"], world.run_of(paused)["created_at"]);
    world.store.control(vec![Command::Resume(paused).into()]).await.unwrap();
    world.run("work", 1, Outcome::Skipped(payload(json!("as it was")))).await;
    let later = Timestamp::from_millis(world.clock.now().as_millis() + 540_000);
    world.add(NewJob::new("work").payload(Json::null()).run_at(later)).await;
    world.check().await;
}

/// JSON texts that PostgreSQL's jsonb refuses, which must not break the row, and still less the view.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_payloads_are_shown_as_well_as_can_be() {
    let world = World::new().await;
    for (text, shown) in [
        (r#"{"a":"x\u0000y","user_id":"ann"}"#, json!({"a": "x\u{FFFD}y", "user_id": "ann"})),
        (r#"["\\u0000"]"#, json!(["\\ufffd"])),
        (r#"["\ud800"]"#, json!(r#"["\ud800"]"#)),
        ("1e999999", json!("1e999999")),
        (r#"{"z":1,"a":2,"z":3}"#, json!({"a": 2, "z": 3})),
    ] {
        let id = world.add(NewJob::new("work").payload(Json::trusted(text))).await;
        assert_eq!(world.run_of(id)["input_data"], shown, "{text}");
        assert_eq!(world.task_of(id, "main")["input_data"], shown, "{text}");
    }
}

#[tokio::test]
async fn sql_knows_ids_as_well_as_the_program() {
    let world = World::new().await;
    let most = (1_i64 << 43) - 1;
    for salt in [0, 1, 0x2AAA_AAAA, (1_u32 << SALT_BITS) - 1] {
        for (created, seq) in [(0, 1), (1_800_000_000_123, 77), ((1 << 48) - 1, most), (1, most - 1)] {
            let id = Ids::new(salt).job(Timestamp::from_millis(created), seq);
            let sql =
                format!("SELECT orchestrator.job_id({salt}, {created}, {seq}), orchestrator.job_seq('{id}')");
            let said = Server::shared().sql(&world.database, &sql);
            assert_eq!(said.trim(), format!("{id}|{seq}"));
        }
    }
}

/// The seed's columns, in its order and of its types; numbers of rows are larger here.
#[tokio::test]
async fn the_columns_are_those_that_tools_expect() {
    let world = World::new().await;
    let columns = |view: &str| {
        let sql = format!(
            "SELECT column_name, data_type FROM information_schema.columns
             WHERE table_schema = 'orchestrator' AND table_name = '{view}' ORDER BY ordinal_position"
        );
        Server::shared().sql(&world.database, &sql).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let named =
        |names: &[&str], kind: &str| names.iter().map(|name| format!("{name}|{kind}")).collect::<Vec<_>>();
    let (id, word) = (named(&["id"], "bigint"), "character varying");
    let moments = named(&["created_at", "updated_at", "completed_at"], "timestamp with time zone");
    let error = named(&["error_message"], "text");
    let run = ["run_id", "flow_id", "tenant_id", "user_id", "correlation_id", "status"];
    let data = named(&["input_data", "output_data", "execution_context"], "jsonb");
    assert_eq!(columns("flow_run_history"), [&id[..], &named(&run, word), &data, &error, &moments].concat());
    let task = named(&["run_id", "task_id", "handler", "status"], word);
    let (attempts, took) = (named(&["attempts"], "integer"), named(&["execution_time_ms"], "integer"));
    let expected = [&id[..], &task, &attempts, &data[..2], &error, &took, &moments].concat();
    assert_eq!(columns("task_execution_history"), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_only_read_the_views_can() {
    let world = World::new().await;
    let id = world.add(NewJob::new("work").payload(Json::null())).await;
    let sql = format!(
        "GRANT USAGE ON SCHEMA orchestrator TO {GUARDED_USER};
         GRANT SELECT ON orchestrator.flow_run_history, orchestrator.task_execution_history TO {GUARDED_USER};
         SET ROLE {GUARDED_USER};
         SELECT r.run_id, t.task_id FROM orchestrator.flow_run_history r
         JOIN orchestrator.task_execution_history t USING (run_id)"
    );
    assert!(Server::shared().sql(&world.database, &sql).contains(&format!("{id}|main")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_carries_along_goes_before_its_payload() {
    let world = World::new().await;
    let input = payload(json!({"user_id": "bob", "correlation_id": "c-1"}));
    let context = Json::parse(r#"{"order": 7, "key": "mine", "odd": "\u0000"}"#).unwrap();
    let meta = Meta {
        context: Some(context),
        correlation_id: Some("c-2".into()),
        user: Some("ann".into()),
        ..Meta::default()
    };
    let whole = world.add(NewJob::new("work").payload(input.clone()).meta(meta).key(Key::new("k"))).await;
    let run = world.run_of(whole);
    assert_eq!((&run["user_id"], &run["correlation_id"]), (&json!("ann"), &json!("c-2")));
    let told = &run["execution_context"];
    assert_eq!((&told["order"], &told["key"], &told["kind"]), (&json!(7), &json!("mine"), &json!("queue")));
    let part = Meta { user: Some("ann".into()), ..Meta::default() };
    let part = world.add(NewJob::new("work").payload(input).meta(part)).await;
    let run = world.run_of(part);
    assert_eq!((&run["user_id"], &run["correlation_id"]), (&json!("ann"), &json!("c-1")));
    assert_eq!(run["execution_context"]["kind"], "queue");
}
