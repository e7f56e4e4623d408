import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { CapsuleKey, CapsuleKeys } from '../base/secrets/capsule-keys.ts'
import { makeDirectory } from '../base/files/directory.ts'
import { createPrivateFile } from '../base/files/private-file.ts'
import { Schema, transaction } from '../base/files/sqlite-schema.ts'

/** Marks the file (PRAGMA application_id): the letters GWCK. */
const APPLICATION_ID = 0x4757434b
/** ms that a statement may wait for another process */
const PATIENCE_MS = 200

const SCHEMA = new Schema({
  id: APPLICATION_ID,
  scripts: ['CREATE TABLE capsule_keys (id TEXT PRIMARY KEY, secret TEXT NOT NULL, starts_at INTEGER NOT NULL) STRICT'],
})

export function capsuleKeyFileOf(ledgerFile: string): string {
  return join(dirname(ledgerFile), 'capsule-keys.db')
}

/**
 * Merges the keys in memory with those in the file, in both directions. All processes of a gateway share the file.
 * @param makesKeys creates the next key here when it is due; false = PostgreSQL has the keys of all gateways
 * @throws what node:fs or node:sqlite throw; an error if the file belongs to another program
 */
export function mergeWithFile(file: string, keys: CapsuleKeys, makesKeys: boolean): void {
  makeDirectory(dirname(file))
  createPrivateFile(file)
  const db = new DatabaseSync(file, { timeout: PATIENCE_MS })
  try {
    SCHEMA.migrate(db)
    transaction(db, () => {
      const rows = db.prepare('SELECT id, secret, starts_at AS "from" FROM capsule_keys').all()
      keys.add(rows.map(row => ({ ...row }) as unknown as CapsuleKey))
      if (makesKeys) keys.renew()
      const insert = db.prepare('INSERT OR IGNORE INTO capsule_keys VALUES (?, ?, ?)')
      for (const { id, secret, from } of keys.all) insert.run(id, secret, from)
    })
  } finally {
    db.close()
  }
}
