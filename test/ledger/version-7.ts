import { DatabaseSync } from 'node:sqlite'

/** Makes a ledger one of version 7, which has no sums by group, protocol and status, no users and no tags. */
export function toVersion7(file: string): void {
  using db = new DatabaseSync(file)
  db.exec(`DROP TRIGGER day_taken_back;
    DROP TABLE detailed_days;
    ALTER TABLE summed DROP COLUMN detailed_up_to;
    ALTER TABLE summed DROP COLUMN detailed_from;
    ${['requests', 'in_flight'].flatMap(table => ['user', 'tags', 'billed', 'queued_ms', 'policy'].map(name => `ALTER TABLE ${table} DROP COLUMN ${name};`)).join('\n')}
    PRAGMA user_version = 7`)
}
