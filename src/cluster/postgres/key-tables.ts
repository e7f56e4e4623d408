/**
 * Tables for the keys of all gateways. `properties` has the columns of a key file (src/auth/key-schema.ts) by name. Changes are numbered in
 * the order in which they become visible, so that a reader who follows the numbers misses no change.
 */
export const KEYS = `
  CREATE TABLE gateway.settings (name text PRIMARY KEY, value text NOT NULL);
  INSERT INTO gateway.settings VALUES ('database', gen_random_uuid());
  CREATE SEQUENCE gateway.key_changes;
  CREATE TABLE gateway.keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
    created_at bigint NOT NULL,
    revoked_at bigint,
    properties jsonb NOT NULL,
    change bigint NOT NULL
  );
  CREATE UNIQUE INDEX keys_live_by_name ON gateway.keys (name) WHERE revoked_at IS NULL;
  CREATE INDEX keys_by_change ON gateway.keys (change);
  CREATE TABLE gateway.key_blocks (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    name text NOT NULL,
    blocked_at bigint,
    change bigint NOT NULL
  );
  CREATE INDEX key_blocks_by_change ON gateway.key_blocks (change);
  CREATE FUNCTION gateway.number_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(${0x47574b43});
    NEW.change := nextval('gateway.key_changes');
    PERFORM pg_notify('gateway_keys', '');
    RETURN NEW;
  END $$;
  CREATE TRIGGER number_change BEFORE INSERT OR UPDATE ON gateway.keys
    FOR EACH ROW EXECUTE FUNCTION gateway.number_key_change();
  CREATE TRIGGER number_change BEFORE INSERT OR UPDATE ON gateway.key_blocks
    FOR EACH ROW EXECUTE FUNCTION gateway.number_key_change();
  CREATE FUNCTION gateway.last_key_change() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest((SELECT max(change) FROM gateway.keys), (SELECT max(change) FROM gateway.key_blocks), 0)
  $$;
  -- What a process has applied; null = it does not follow the keys.
  ALTER TABLE gateway.instances ADD COLUMN key_change bigint;

  CREATE TABLE gateway.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    address text,
    action text NOT NULL,
    subject text,
    detail text,
    -- Of an entry that was in a gateway's file before: the file, and its id there.
    origin uuid,
    origin_id bigint,
    UNIQUE (origin, origin_id, at)
  );
  -- As in the file, the newest 10,000 of each action and kind of actor are kept.
  CREATE FUNCTION gateway.trim_audit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM gateway.audit WHERE id IN (
      SELECT id FROM (SELECT id, row_number() OVER (
        PARTITION BY action, actor LIKE 'key: %', actor = 'console: unknown' ORDER BY id DESC) AS place
        FROM gateway.audit) AS placed WHERE place > 10000);
    RETURN NULL;
  END $$;
  CREATE TRIGGER trim_audit AFTER INSERT ON gateway.audit
    FOR EACH ROW WHEN (NEW.id % 100 = 0) EXECUTE FUNCTION gateway.trim_audit();

  CREATE TABLE gateway.console_sessions (
    digest bytea PRIMARY KEY,
    kind text NOT NULL,
    name text NOT NULL,
    credential text NOT NULL,
    created_at bigint NOT NULL,
    seen_at bigint NOT NULL
  );`

/**
 * Keys that callers make. `may_make_key` is volatile, so it reads what was committed before it got the lock, which is held until the
 * transaction ends: of parallel requests of one caller, each one sees the keys of those before it.
 */
export const CALLER_KEYS = `
  CREATE INDEX keys_by_caller ON gateway.keys ((properties ->> 'caller')) WHERE properties ->> 'caller' IS NOT NULL;
  CREATE FUNCTION gateway.live_keys_of(caller text, now bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT count(*) FROM gateway.keys WHERE properties ->> 'caller' = caller AND revoked_at IS NULL
      AND coalesce((properties ->> 'expires_at')::bigint > now, true)
  $$;
  CREATE FUNCTION gateway.may_make_key(caller text, now bigint, live bigint, per_day bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(${0x47574341}, hashtext(caller));
    RETURN gateway.live_keys_of(caller, now) < live AND (SELECT count(*) FROM gateway.keys
      WHERE properties ->> 'caller' = caller AND created_at > now - 86400000) < per_day;
  END $$`
