//! Gives numbers to names, outside of the transaction that needs them: a name that nobody uses in the end does no harm,
//! and what is committed at once can be shared at once.

use crate::connect::Connections;
use crate::load::{lane, lane_digest, spec_digest, unreadable};
use crate::names::{Known, LaneName, Names};
use crate::tx::{Abort, Tx};
use crate::work::{FairKey, Needs};
use futures_util::future::try_join;
use orchestrator_core::flow::Plan;
use orchestrator_core::{LimitKey, Limits, TaskSpec};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// In the FROM of a statement that is a transaction of its own: its commit does not wait for the disk. What it gives out
/// is used by transactions that commit later and do wait, and then everything before them is on disk. If the server
/// crashes before that, the connection of the transaction that asked is gone, too.
macro_rules! lightly {
    () => {
        "(SELECT set_config('synchronous_commit', 'off', true)) lightly"
    };
}

/// Makes names known. It has connections of its own: whoever asks holds one already, and must not wait for another.
pub struct Naming(pub Connections);

/// What a transaction may use that asked for it.
#[derive(Default)]
pub struct Reserved {
    /// Places in line.
    pub places: Vec<(FairKey, RangeInclusive<i64>)>,
    /// Numbers of new jobs.
    pub seqs: Vec<i64>,
}

impl Naming {
    /// Makes known what is missing.
    pub async fn learn(&self, names: &Names, needs: &Needs) -> Result<(), Abort> {
        let Needs { specs, tenants, lanes, lane_ids, spec_ids, tenant_ids, flow_ids, .. } = needs;
        let texts = specs.is_empty() && tenants.is_empty() && lanes.is_empty();
        let ids = lane_ids.is_empty() && spec_ids.is_empty() && tenant_ids.is_empty() && flow_ids.is_empty();
        if texts && ids {
            return Ok(());
        }
        let client = self.0.writer().await.map_err(Abort::Away)?;
        if !specs.is_empty() {
            let (digests, bodies) =
                specs.iter().map(|spec| spec_digest(spec)).collect::<Result<(Vec<_>, Vec<_>), _>>()?;
            let make = "INSERT INTO specs (digest, body) SELECT DISTINCT ON (d) d, b FROM unnest($1::uuid[], $2::text[]) w(d, b)
                ON CONFLICT DO NOTHING";
            client.execute(&client.prepare_cached(make).await?, &[&digests, &bodies]).await?;
            let find = client.prepare_cached("SELECT id, body FROM specs WHERE digest = ANY($1)").await?;
            learn_specs(names, client.query(&find, &[&digests]).await?)?;
        }
        if !spec_ids.is_empty() {
            let wanted: Vec<i32> = spec_ids.iter().copied().collect();
            let find = client.prepare_cached("SELECT id, body FROM specs WHERE id = ANY($1)").await?;
            learn_specs(names, client.query(&find, &[&wanted]).await?)?;
        }
        if !tenants.is_empty() {
            let wanted: Vec<&str> = tenants.iter().map(|name| &**name).collect();
            let make = "INSERT INTO tenants (name) SELECT DISTINCT n FROM unnest($1::text[]) w(n) ON CONFLICT DO NOTHING";
            client.execute(&client.prepare_cached(make).await?, &[&wanted]).await?;
            let find = client.prepare_cached("SELECT id, name FROM tenants WHERE name = ANY($1)").await?;
            learn_tenants(names, client.query(&find, &[&wanted]).await?);
        }
        if !tenant_ids.is_empty() {
            let wanted: Vec<i32> = tenant_ids.iter().copied().collect();
            let find = client.prepare_cached("SELECT id, name FROM tenants WHERE id = ANY($1)").await?;
            learn_tenants(names, client.query(&find, &[&wanted]).await?);
        }
        if !lanes.is_empty() {
            make_lanes(&client, names, lanes).await?;
        }
        if !lane_ids.is_empty() {
            let wanted: Vec<i32> = lane_ids.iter().copied().collect();
            let find = "SELECT id, line, queue, handler, limits FROM lanes WHERE id = ANY($1)";
            let rows = client.query(&client.prepare_cached(find).await?, &[&wanted]).await?;
            learn_lanes(&client, names, rows).await?;
        }
        Ok(())
    }

    /// Reserves places in line, each behind the last of its tenant and not before the front, and numbers for new jobs. A
    /// place or number that is not taken in the end leaves a gap, which does no harm; nor does it if a server that crashes
    /// forgets that a place was given, because two tasks may have the same stamp.
    pub async fn reserve(&self, places: &BTreeMap<FairKey, i64>, jobs: usize) -> Result<Reserved, Abort> {
        const MAKE: &str = "INSERT INTO fair (line, tier, tenant, next)
            SELECT line, tier, tenant, 0 FROM unnest($1::int[], $2::smallint[], $3::int[]) w(line, tier, tenant)
            ON CONFLICT DO NOTHING";
        const RESERVE: &str = concat!(
            "UPDATE fair f SET next = greatest(f.next, coalesce(x.next, 0)) + w.n
            FROM ",
            lightly!(),
            ", unnest($1::int[], $2::smallint[], $3::int[], $4::bigint[]) w(line, tier, tenant, n)
                LEFT JOIN fair x ON x.line = ANY (ARRAY[w.line]) AND x.tier = ANY (ARRAY[w.tier]) AND x.tenant = 0
            WHERE f.line = ANY (ARRAY[w.line]) AND f.tier = ANY (ARRAY[w.tier]) AND f.tenant = ANY (ARRAY[w.tenant])
            RETURNING f.line, f.tier, f.tenant, f.next - w.n, f.next - 1"
        );
        const NUMBER: &str =
            concat!("SELECT nextval('job_seq') FROM generate_series(1, $1::bigint), ", lightly!());
        let mut reserved = Reserved::default();
        if places.is_empty() && jobs == 0 {
            return Ok(reserved);
        }
        let client = self.0.writer().await.map_err(Abort::Away)?;
        let (reserve, number) = (client.prepare_cached(RESERVE).await?, client.prepare_cached(NUMBER).await?);
        let numbers = async {
            match jobs {
                0 => Ok(vec![]),
                _ => client.query(&number, &[&(jobs as i64)]).await,
            }
        };
        let all = async {
            let mut wanted: Vec<(FairKey, i64)> = places.iter().map(|(key, n)| (*key, *n)).collect();
            let mut found = vec![];
            while !wanted.is_empty() {
                let lines: Vec<i32> = wanted.iter().map(|(key, _)| key.0).collect();
                let tiers: Vec<i16> = wanted.iter().map(|(key, _)| i16::from(key.1)).collect();
                let tenants: Vec<i32> = wanted.iter().map(|(key, _)| key.2).collect();
                let n: Vec<i64> = wanted.iter().map(|(_, n)| *n).collect();
                for row in client.query(&reserve, &[&lines, &tiers, &tenants, &n]).await? {
                    let key: FairKey = (row.get(0), crate::load::tier(&row, 1), row.get(2));
                    wanted.retain(|(wanted, _)| *wanted != key);
                    found.push((key, row.get(3)..=row.get(4)));
                }
                if !wanted.is_empty() {
                    let make = client.prepare_cached(MAKE).await?;
                    client.execute(&make, &[&lines, &tiers, &tenants]).await?;
                }
            }
            Ok(found)
        };
        // One after the other on one connection, but sent together.
        let (found, numbers) = try_join(all, numbers).await?;
        reserved.places = found;
        reserved.seqs = numbers.iter().map(|row| row.get(0)).collect();
        Ok(reserved)
    }

    /// Makes lines known that are asked for, as far as there are such.
    pub async fn find_lines(
        &self,
        names: &Names,
        queues: &[Arc<str>],
        handlers: &[Arc<str>],
    ) -> Result<(), Abort> {
        let queues: Vec<&str> = queues.iter().map(|name| &**name).collect();
        let handlers: Vec<&str> = handlers.iter().map(|name| &**name).collect();
        let client = self.0.writer().await.map_err(Abort::Away)?;
        let find = "SELECT id, line, queue, handler, limits FROM lanes
            WHERE line IS NULL AND queue = ANY($1) AND handler = ANY($2)";
        let rows = client.query(&client.prepare_cached(find).await?, &[&queues, &handlers]).await?;
        learn_lanes(&client, names, rows).await
    }

    /// Makes flows known that are committed, or that this transaction has written.
    pub async fn learn_flows(&self, names: &Names, tx: &mut Tx, wanted: &[i32]) -> Result<(), Abort> {
        let sql = "SELECT id, implicit, body FROM flows WHERE id = ANY($1)";
        for row in tx.query(sql, &[&wanted]).await? {
            let plan = Arc::new(read_plan(row.get(1), row.get(2)).map_err(Abort::Invalid)?);
            names.learn(|known| drop(known.flows.insert(row.get(0), plan)));
        }
        Ok(())
    }
}

/// Lines first, which stand for queue and handler, then the lanes with limits, and which keys are met in which lines.
async fn make_lanes(
    client: &deadpool_postgres::Client,
    names: &Names,
    wanted: &[LaneName],
) -> Result<(), Abort> {
    let mut keys: Vec<&str> = wanted.iter().flat_map(|lane| lane.2.keys()).map(LimitKey::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    if !keys.is_empty() {
        let make = "INSERT INTO limit_keys (key) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING";
        client.execute(&client.prepare_cached(make).await?, &[&keys]).await?;
    }
    let lines: Vec<LaneName> =
        wanted.iter().map(|lane| (lane.0.clone(), lane.1.clone(), Limits::none())).collect();
    insert_lanes(client, &lines).await?;
    insert_lanes(client, wanted).await?;
    let digests: Vec<Uuid> = wanted.iter().chain(&lines).map(lane_digest).collect();
    let find = "SELECT id, line, queue, handler, limits FROM lanes WHERE digest = ANY($1)";
    let rows = client.query(&client.prepare_cached(find).await?, &[&digests]).await?;
    learn_lanes(client, names, rows).await?;
    let known = names.known();
    let (mut met_keys, mut met_lines) = (vec![], vec![]);
    for lane in wanted.iter().filter_map(|name| known.lanes.get(known.lane_ids.get(name)?)) {
        met_keys.extend(lane.keys.iter().copied());
        met_lines.extend(lane.keys.iter().map(|_| lane.line));
    }
    let met = "INSERT INTO key_lines (limit_key, line) SELECT DISTINCT k, l FROM unnest($1::int[], $2::int[]) w(k, l)
        ON CONFLICT DO NOTHING";
    client.execute(&client.prepare_cached(met).await?, &[&met_keys, &met_lines]).await?;
    Ok(())
}

async fn insert_lanes(client: &deadpool_postgres::Client, lanes: &[LaneName]) -> Result<(), Abort> {
    let digests: Vec<Uuid> = lanes.iter().map(lane_digest).collect();
    let bare: Vec<Option<Uuid>> = lanes
        .iter()
        .map(|lane| {
            (!lane.2.is_empty()).then(|| lane_digest(&(lane.0.clone(), lane.1.clone(), Limits::none())))
        })
        .collect();
    let queues: Vec<&str> = lanes.iter().map(|lane| &*lane.0).collect();
    let handlers: Vec<&str> = lanes.iter().map(|lane| &*lane.1).collect();
    let limits = lanes.iter().map(|lane| serde_json::to_string(&lane.2)).collect::<Result<Vec<_>, _>>();
    let limits = limits.map_err(|error| Abort::Invalid(error.to_string()))?;
    let make = "INSERT INTO lanes (digest, line, queue, handler, limits)
        SELECT DISTINCT ON (w.d) w.d, b.id, w.q, w.h, w.l
        FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[]) w(d, b, q, h, l)
        LEFT JOIN lanes b ON b.digest = ANY (ARRAY[w.b])
        ON CONFLICT DO NOTHING";
    client
        .execute(&client.prepare_cached(make).await?, &[&digests, &bare, &queues, &handlers, &limits])
        .await?;
    Ok(())
}

async fn learn_lanes(client: &deadpool_postgres::Client, names: &Names, rows: Vec<Row>) -> Result<(), Abort> {
    let mut found = vec![];
    for row in &rows {
        let limits: Limits = serde_json::from_str(row.get(4)).map_err(|_| unreadable("a lane"))?;
        let name: LaneName = (row.get::<_, &str>(2).into(), row.get::<_, &str>(3).into(), limits);
        found.push((row.get::<_, i32>(0), row.get::<_, Option<i32>>(1), name));
    }
    let keys: Vec<&str> = found.iter().flat_map(|(_, _, name)| name.2.keys()).map(LimitKey::as_str).collect();
    let rows = if keys.is_empty() {
        vec![]
    } else {
        let find = client.prepare_cached("SELECT id, key FROM limit_keys WHERE key = ANY($1)").await?;
        client.query(&find, &[&keys]).await?
    };
    names.learn(|known| {
        for row in &rows {
            if let Ok(key) = row.get::<_, &str>(1).parse::<LimitKey>() {
                known.key_ids.insert(key.clone(), row.get(0));
                known.keys.insert(row.get(0), key);
            }
        }
    });
    let known = names.known();
    let mut lanes = vec![];
    for (id, line, name) in found {
        let lane = lane(id, line, &name, |key| known.key_ids.get(key).copied())?;
        lanes.push((name, lane));
    }
    names.learn(|known: &mut Known| {
        for (name, lane) in lanes {
            known.lane_ids.insert(name, lane.id);
            known.lanes.insert(lane.id, lane);
        }
    });
    Ok(())
}

fn learn_specs(names: &Names, rows: Vec<Row>) -> Result<(), Abort> {
    for row in rows {
        let spec: TaskSpec = serde_json::from_str(row.get(1)).map_err(|_| unreadable("a spec"))?;
        let spec = Arc::new(spec);
        names.learn(|known| {
            known.specs.insert(row.get(0), spec.clone());
            known.spec_ids.insert(spec, row.get(0));
        });
    }
    Ok(())
}

fn learn_tenants(names: &Names, rows: Vec<Row>) {
    for row in rows {
        let name: Arc<str> = row.get::<_, &str>(1).into();
        names.learn(|known| {
            known.tenants.insert(row.get(0), name.clone());
            known.tenant_ids.insert(name, row.get(0));
        });
    }
}

/// Reads a flow back that was stored.
pub fn read_plan(implicit: bool, body: &str) -> Result<Plan, String> {
    if implicit {
        return Plan::of_task_from_text(body).map_err(|error| error.to_string());
    }
    Plan::from_text(body).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        format!("a stored flow does not read back: {}", problems.join("; "))
    })
}
