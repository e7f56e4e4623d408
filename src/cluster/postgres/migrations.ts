import { CALLER_KEYS, KEYS } from './key-tables.ts'

/*
 * The schema of PostgreSQL as scripts, in the order of their versions. A script only adds, so that gateways of the previous version
 * keep working. A released script is never edited.
 */

/** Named as in the SQLite ledger (src/ledger/sums/contributions.ts). */
const SUMS = [
  'requests', 'errors', 'unpriced', 'estimated',
  'input_high', 'input_low', 'cached_high', 'cached_low', 'cache_write_high', 'cache_write_low',
  'output_high', 'output_low', 'reasoning_high', 'reasoning_low',
  'cost_high', 'cost_low', 'estimated_cost_high', 'estimated_cost_low',
] as const
const SUM_COLUMNS = `${SUMS.map(name => `${name} bigint NOT NULL`).join(', ')}, last_at bigint NOT NULL`
const SUM_LIST = [...SUMS, 'last_at'].join(', ')
const SUM_TOTALS = `${SUMS.map(name => `sum(${name})::bigint AS ${name}`).join(', ')}, max(last_at) AS last_at`

/** Divides the two parts of a sum, as in the SQLite ledger. */
const PART = 1_000_000_000

function parts(name: string, value: string): string {
  return `sign * coalesce((${value}) / ${PART}, 0) AS ${name}_high, sign * coalesce((${value}) % ${PART}, 0) AS ${name}_low`
}

/** The share of a changed row in the sums; sign is 1 for a new row, and -1 for a row before an update. */
const FIGURES = [
  'sign AS requests',
  `CASE WHEN "end" IN ('complete', 'client_gone') THEN 0 ELSE sign END AS errors`,
  'CASE WHEN cost_pico_usd IS NULL THEN sign ELSE 0 END AS unpriced',
  `CASE WHEN source IN ('estimated', 'mixed') THEN sign ELSE 0 END AS estimated`,
  parts('input', 'input_tokens'),
  parts('cached', 'cached_input_tokens'),
  parts('cache_write', 'coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)'),
  parts('output', 'output_tokens'),
  parts('reasoning', 'reasoning_tokens'),
  parts('cost', 'cost_pico_usd'),
  parts('estimated_cost', `CASE WHEN source IN ('estimated', 'mixed') THEN cost_pico_usd ELSE 0 END`),
].join(', ')

function addSums(table: string, identity: string): string {
  const additions = SUMS.map(name => `${name} = kept.${name} + excluded.${name}`).join(', ')
  return `ON CONFLICT (${identity}) DO UPDATE SET ${additions}, last_at = greatest(kept.last_at, excluded.last_at)`
    .replaceAll('kept.', `${table}.`)
}

/** Functions and triggers that update sums. @param statement its argument selects the changed rows, with their sign */
function sumTriggers(name: string, statement: (changed: string) => string): string {
  const sumFunction = (suffix: string, changed: string): string => `
  CREATE FUNCTION gateway.${name}_${suffix}() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    ${statement(changed)};
    RETURN NULL;
  END $$;`
  return `${sumFunction('added', 'SELECT 1 AS sign, added.* FROM added')}
  CREATE TRIGGER ${name}_added AFTER INSERT ON gateway.requests REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION gateway.${name}_added();
  ${sumFunction('changed', 'SELECT 1 AS sign, added.* FROM added UNION ALL SELECT -1, removed.* FROM removed')}
  CREATE TRIGGER ${name}_changed AFTER UPDATE ON gateway.requests REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION gateway.${name}_changed();`
}

const keySums = (changed: string): string => `WITH changed AS MATERIALIZED (${changed}),
    figures AS MATERIALIZED (
      SELECT (started_at / 3600000)::integer AS hour, key, model, upstream, ${FIGURES}, started_at AS last_at FROM changed),
    hourly AS MATERIALIZED (SELECT hour, key, model, upstream, ${SUM_TOTALS} FROM figures GROUP BY hour, key, model, upstream),
    into_hours AS (
      INSERT INTO gateway.hours AS hours (hour, key, model, upstream, ${SUM_LIST})
      SELECT hour, key, model, upstream, ${SUM_LIST} FROM hourly
      ${addSums('hours', 'hour, key, model, upstream')}),
    into_days AS (
      INSERT INTO gateway.days AS days (day, key, model, upstream, ${SUM_LIST})
      SELECT hour / 24, key, model, upstream, ${SUM_TOTALS} FROM hourly GROUP BY hour / 24, key, model, upstream
      ${addSums('days', 'day, key, model, upstream')}),
    into_dimensions AS (
      INSERT INTO gateway.dimension_days AS dimension_days (dimension, day, name, ${SUM_LIST})
      SELECT dimension, hour / 24, name, ${SUM_TOTALS} FROM hourly
        CROSS JOIN LATERAL (VALUES (0, upstream), (1, key), (2, model)) AS each (dimension, name)
        GROUP BY dimension, hour / 24, name
      ${addSums('dimension_days', 'dimension, day, name')})
    INSERT INTO gateway.first_byte_hour_buckets AS kept (scope, name, hour, bucket, times)
    SELECT scope, name, (started_at / 3600000)::integer AS hour,
        CASE WHEN first_byte_ms <= 0.1 THEN 0 ELSE ceil(ln(first_byte_ms / 0.1) / ln(1.1::float8))::integer END AS bucket,
        sum(sign) AS times
      FROM changed CROSS JOIN LATERAL (VALUES (0, ''), (1, upstream), (2, key)) AS each (scope, name)
      WHERE first_byte_ms IS NOT NULL AND name IS NOT NULL GROUP BY 1, 2, 3, 4
    ON CONFLICT (scope, name, hour, bucket) DO UPDATE SET times = kept.times + excluded.times`

const groupSums = (changed: string): string => `INSERT INTO gateway.dimension_days AS dimension_days (dimension, day, name, ${SUM_LIST})
    SELECT 3, day, "group", ${SUM_TOTALS} FROM (
      SELECT (started_at / 86400000)::integer AS day, "group", ${FIGURES}, started_at AS last_at
        FROM (${changed}) AS changed WHERE "group" IS NOT NULL) AS figures
      GROUP BY day, "group"
    ${addSums('dimension_days', 'dimension, day, name')}`

const DETAILED_NAMES = 'key, model, upstream, "group", protocol, status'

const detailedSums = (changed: string): string => `INSERT INTO gateway.detailed_days AS detailed_days (day, ${DETAILED_NAMES}, ${SUM_LIST})
    SELECT day, ${DETAILED_NAMES}, ${SUM_TOTALS} FROM (
      SELECT (started_at / 86400000)::integer AS day, key, model, upstream, "group", protocol, status::text AS status,
          ${FIGURES}, started_at AS last_at
        FROM (${changed}) AS changed
        WHERE started_at / 86400000 >= (SELECT day FROM gateway.detailed_from)) AS figures
      GROUP BY day, ${DETAILED_NAMES}
    ${addSums('detailed_days', `day, ${DETAILED_NAMES}`)}`

/*
 * The rows of all gateways' journals (SQLite ledgers). Triggers update the sums in the transaction that adds rows. One transaction
 * at a time adds rows: ids then have the order in which rows become visible, so a reader who follows them misses none, and no two
 * transactions wait for each other's sums.
 */
const LEDGER = `
  CREATE TABLE gateway.journals (
    journal integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    instance text NOT NULL
  );
  CREATE SEQUENCE gateway.request_positions;
  CREATE TABLE gateway.requests (
    id bigint NOT NULL DEFAULT nextval('gateway.request_positions'),
    journal integer NOT NULL,
    request_id text NOT NULL,
    started_at bigint NOT NULL,
    first_byte_ms double precision,
    duration_ms double precision,
    key text,
    protocol text,
    endpoint text,
    model text,
    upstream text,
    upstream_model text,
    status integer,
    "end" text NOT NULL,
    error text,
    source text NOT NULL,
    input_tokens bigint,
    cached_input_tokens bigint,
    cache_write_5m_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint,
    input_audio_tokens bigint,
    output_audio_tokens bigint,
    input_image_tokens bigint,
    output_image_tokens bigint,
    seconds double precision,
    characters bigint,
    images bigint,
    cost_pico_usd bigint,
    price text,
    price_version text,
    attempts text,
    bytes_in bigint,
    bytes_out bigint,
    route text,
    trace_id text,
    PRIMARY KEY (request_id, started_at, journal)
  ) PARTITION BY RANGE (started_at);
  CREATE INDEX requests_by_time ON gateway.requests (started_at, id);
  CREATE INDEX requests_by_key ON gateway.requests (key, started_at);
  CREATE INDEX requests_by_position ON gateway.requests (id);
  CREATE INDEX requests_unusual ON gateway.requests (started_at, id)
    WHERE status IS DISTINCT FROM 200 OR "end" <> 'complete';

  CREATE TABLE gateway.hours (hour integer NOT NULL, key text, model text, upstream text, ${SUM_COLUMNS},
    UNIQUE NULLS NOT DISTINCT (hour, key, model, upstream));
  CREATE TABLE gateway.days (day integer NOT NULL, key text, model text, upstream text, ${SUM_COLUMNS},
    UNIQUE NULLS NOT DISTINCT (day, key, model, upstream));
  CREATE INDEX days_by_key ON gateway.days (key, day);
  CREATE TABLE gateway.dimension_days (dimension integer NOT NULL, day integer NOT NULL, name text, ${SUM_COLUMNS},
    UNIQUE NULLS NOT DISTINCT (dimension, day, name));
  CREATE TABLE gateway.first_byte_hour_buckets (scope integer NOT NULL, name text NOT NULL, hour integer NOT NULL,
    bucket integer NOT NULL, times bigint NOT NULL, PRIMARY KEY (scope, name, hour, bucket));
  CREATE INDEX first_byte_hour_buckets_by_hour ON gateway.first_byte_hour_buckets (hour);
  CREATE TABLE gateway.first_byte_day_buckets (scope integer NOT NULL, name text NOT NULL, day integer NOT NULL,
    bucket integer NOT NULL, times bigint NOT NULL, PRIMARY KEY (scope, name, day, bucket));

  CREATE FUNCTION gateway.add_in_turn() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(${0x47574c47});
    RETURN NULL;
  END $$;
  CREATE TRIGGER add_in_turn BEFORE INSERT ON gateway.requests
    FOR EACH STATEMENT EXECUTE FUNCTION gateway.add_in_turn();
  ${sumTriggers('sum', keySums)}

  CREATE FUNCTION gateway.add_partition(month date) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    name text := 'requests_' || to_char(month, 'YYYY_MM');
    first bigint := extract(epoch FROM month::timestamp) * 1000;
    next bigint := extract(epoch FROM month::timestamp + interval '1 month') * 1000;
  BEGIN
    PERFORM pg_advisory_xact_lock(${0x47574c50});
    -- Not to_regclass: it may not know yet what another transaction has made.
    IF EXISTS (SELECT FROM pg_tables WHERE schemaname = 'gateway' AND tablename = name) THEN RETURN; END IF;
    -- Made beside and attached: CREATE TABLE ... PARTITION OF would lock out every reader.
    EXECUTE format('CREATE TABLE gateway.%I (LIKE gateway.requests INCLUDING ALL)', name);
    EXECUTE format('ALTER TABLE gateway.requests ATTACH PARTITION gateway.%I FOR VALUES FROM (%s) TO (%s)', name, first, next);
  END $$;

  CREATE FUNCTION gateway.drop_partitions(before bigint) RETURNS integer LANGUAGE plpgsql AS $$
  DECLARE
    partition text;
    dropped integer := 0;
  BEGIN
    FOR partition IN
      SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'gateway.requests'::regclass
          AND extract(epoch FROM to_date(right(relname, 7), 'YYYY_MM')::timestamp + interval '1 month') * 1000 <= before
    LOOP
      EXECUTE format('DROP TABLE gateway.%I', partition);
      dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
  END $$;

  CREATE FUNCTION gateway.expire_hours(first_hour integer) RETURNS void LANGUAGE sql AS $$
    DELETE FROM gateway.hours WHERE hour < first_hour;
    INSERT INTO gateway.first_byte_day_buckets AS kept (scope, name, day, bucket, times)
      SELECT scope, name, hour / 24, bucket, sum(times) FROM gateway.first_byte_hour_buckets
        WHERE hour < first_hour GROUP BY 1, 2, 3, 4
      ON CONFLICT (scope, name, day, bucket) DO UPDATE SET times = kept.times + excluded.times;
    DELETE FROM gateway.first_byte_hour_buckets WHERE hour < first_hour;
  $$;`

/** The last report of each process of all gateways. Times are those of the database. */
const INSTANCES = `
  CREATE TABLE gateway.instances (
    process uuid PRIMARY KEY,
    name text NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    requests_in_flight integer NOT NULL,
    outbox_rows bigint NOT NULL,
    clock_difference_ms double precision NOT NULL
  );`

/* The group and the owner of the key, and sums of each group by day. The previous version's rows have neither. */
const GROUPS = `
  ALTER TABLE gateway.requests ADD COLUMN "group" text;
  ALTER TABLE gateway.requests ADD COLUMN owner text;
  ${sumTriggers('sum_group', groupSums)}`

const UPSTREAM_PROTOCOL = 'ALTER TABLE gateway.requests ADD COLUMN upstream_protocol text'

/** The last row that `gateway ledger copy` has sent, so that an interrupted copy can continue. */
const COPIED_TO = 'ALTER TABLE gateway.journals ADD COLUMN copied_to bigint NOT NULL DEFAULT 0'

/*
 * Sums by day for each combination of names, since the day in detailed_from: the first day after all existing rows. The triggers lock
 * the table, so no rows are added until this script is committed.
 */
const DETAILED = `
  CREATE TABLE gateway.detailed_from (day integer NOT NULL);
  CREATE TABLE gateway.detailed_days (day integer NOT NULL, key text, model text, upstream text, "group" text, protocol text,
    status text, ${SUM_COLUMNS}, UNIQUE NULLS NOT DISTINCT (day, ${DETAILED_NAMES}));
  ${sumTriggers('sum_detailed', detailedSums)}
  INSERT INTO gateway.detailed_from SELECT coalesce(max(day) + 1, 0) FROM gateway.days;`

/** The last reloads of each gateway, as in the console's file (src/console/store/reload-history.ts). */
const RELOADS = `
  CREATE TABLE gateway.reloads (
    instance text NOT NULL,
    at bigint NOT NULL,
    digest bytea NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (instance, at, digest)
  );
  CREATE INDEX reloads_by_time ON gateway.reloads (at)`

/** A stored list, or null: the broken JSON of one row must not fail a query of many. */
const JSON_LIST = `
  CREATE FUNCTION gateway.json_list(stored text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN
    IF json_typeof(stored::json) = 'array' THEN RETURN stored::json; END IF;
    RETURN NULL;
  EXCEPTION WHEN OTHERS THEN RETURN NULL;
  END $$`

/** Who a request was for, its purpose, and who pays the upstream. The previous version's rows have none of them. */
const ATTRIBUTION = `
  ALTER TABLE gateway.requests ADD COLUMN "user" text;
  ALTER TABLE gateway.requests ADD COLUMN tags text;
  ALTER TABLE gateway.requests ADD COLUMN billed text;`

/** The previous version's rows have none. */
const QUEUED_MS = 'ALTER TABLE gateway.requests ADD COLUMN queued_ms double precision'

/** What rules did, as JSON. The previous version's rows have none. */
const POLICY = 'ALTER TABLE gateway.requests ADD COLUMN policy text'

export const MIGRATIONS: readonly string[] = [
  LEDGER, INSTANCES, GROUPS, UPSTREAM_PROTOCOL, KEYS, COPIED_TO, DETAILED, RELOADS, JSON_LIST, ATTRIBUTION, CALLER_KEYS, QUEUED_MS, POLICY,
]
