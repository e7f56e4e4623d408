import { StoreError } from '../base/files/store-error.ts'
import { Schema } from '../base/files/sqlite-schema.ts'
import { AUDIT_SCHEMA } from './audit.ts'

/** Marks a SQLite file as a store of keys (PRAGMA application_id): the letters GWKS. */
const APPLICATION_ID = 0x47574b53

export function takenError(name: string): StoreError {
  return new StoreError('taken', `a live key has the name ${JSON.stringify(name)} already`)
}

export function quotaError(reason: 'live' | 'perDay'): StoreError {
  return new StoreError(reason === 'live' ? 'full' : 'often', 'the caller has made as many keys as it may')
}

export function revokedError(name: string): StoreError {
  return new StoreError('missing', `the key ${JSON.stringify(name)} was revoked`)
}

/**
 * `change` numbers the changes: a reader asks for rows above the last number that it has read. Triggers set the number, so no
 * writer can forget it. Rows are never deleted: a revocation is a change like any other.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    models TEXT CHECK (json_valid(models)),
    limits TEXT CHECK (json_valid(limits)),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    change INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE UNIQUE INDEX keys_live_by_name ON keys (name) WHERE revoked_at IS NULL;
  CREATE INDEX keys_by_name ON keys (name);
  CREATE INDEX keys_by_change ON keys (change);
  CREATE TRIGGER keys_created AFTER INSERT ON keys BEGIN
    UPDATE keys SET change = (SELECT max(change) + 1 FROM keys) WHERE id = NEW.id;
  END;
  CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, digest, models, limits, created_at, revoked_at ON keys BEGIN
    UPDATE keys SET change = (SELECT max(change) + 1 FROM keys) WHERE id = NEW.id;
  END;
  CREATE TRIGGER keys_kept BEFORE DELETE ON keys BEGIN
    SELECT raise(ABORT, 'keys are revoked, not deleted');
  END;`,
  // Blocked keys, configured or stored (blocked_at is null for an unblocked key); the audit list.
  `CREATE TABLE blocks (
    digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
    name TEXT NOT NULL,
    blocked_at INTEGER,
    change INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX blocks_by_change ON blocks (change);
  CREATE VIEW changes AS SELECT max(change) AS last FROM keys UNION ALL SELECT max(change) FROM blocks;
  DROP TRIGGER keys_created;
  DROP TRIGGER keys_changed;
  CREATE TRIGGER keys_created AFTER INSERT ON keys BEGIN
    UPDATE keys SET change = (SELECT max(last) + 1 FROM changes) WHERE id = NEW.id;
  END;
  CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, digest, models, limits, created_at, revoked_at ON keys BEGIN
    UPDATE keys SET change = (SELECT max(last) + 1 FROM changes) WHERE id = NEW.id;
  END;
  CREATE TRIGGER blocks_created AFTER INSERT ON blocks BEGIN
    UPDATE blocks SET change = (SELECT max(last) + 1 FROM changes) WHERE digest = NEW.digest;
  END;
  CREATE TRIGGER blocks_changed AFTER UPDATE OF name, blocked_at ON blocks BEGIN
    UPDATE blocks SET change = (SELECT max(last) + 1 FROM changes) WHERE digest = NEW.digest;
  END;
  ${AUDIT_SCHEMA}`,
  // old_secrets: [[digest in hexadecimal, ms since 1970 until when it is valid], ...]
  `ALTER TABLE keys ADD COLUMN owner TEXT;
  ALTER TABLE keys ADD COLUMN note TEXT;
  ALTER TABLE keys ADD COLUMN expires_at INTEGER;
  ALTER TABLE keys ADD COLUMN prefix TEXT;
  ALTER TABLE keys ADD COLUMN old_secrets TEXT CHECK (json_valid(old_secrets));
  DROP TRIGGER keys_changed;
  CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, digest, models, limits, created_at, revoked_at, owner, note, expires_at, prefix, old_secrets
  ON keys BEGIN
    UPDATE keys SET change = (SELECT max(last) + 1 FROM changes) WHERE id = NEW.id;
  END;`,
  `ALTER TABLE keys ADD COLUMN group_name TEXT;
  DROP TRIGGER keys_changed;
  CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, digest, models, limits, created_at, revoked_at, owner, note, expires_at, prefix, old_secrets,
    group_name
  ON keys BEGIN
    UPDATE keys SET change = (SELECT max(last) + 1 FROM changes) WHERE id = NEW.id;
  END;`,
  // For a copy of the keys in PostgreSQL: their ids there, the id of the database, and the last change in this copy.
  `ALTER TABLE keys ADD COLUMN shared_id INTEGER;
  CREATE UNIQUE INDEX keys_by_shared_id ON keys (shared_id);
  CREATE TABLE copies (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    origin TEXT NOT NULL,
    database TEXT NOT NULL,
    position INTEGER NOT NULL
  ) STRICT;`,
  // caller: who made the key; tags: {"project": "alpha"}
  `ALTER TABLE keys ADD COLUMN caller TEXT;
  ALTER TABLE keys ADD COLUMN tags TEXT CHECK (json_valid(tags));
  CREATE INDEX keys_by_caller ON keys (caller) WHERE caller IS NOT NULL;
  DROP TRIGGER keys_changed;
  CREATE TRIGGER keys_changed
  AFTER UPDATE OF id, name, digest, models, limits, created_at, revoked_at, owner, note, expires_at, prefix, old_secrets,
    group_name, caller, tags
  ON keys BEGIN
    UPDATE keys SET change = (SELECT max(last) + 1 FROM changes) WHERE id = NEW.id;
  END;`,
]

export const KEY_SCHEMA = new Schema({ id: APPLICATION_ID, scripts: MIGRATIONS })
