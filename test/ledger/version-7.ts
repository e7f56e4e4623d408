import { DatabaseSync } from 'node:sqlite'

/** Makes a ledger one of version 7, which has no sums by group, protocol and status. */
export function toVersion7(file: string): void {
  using db = new DatabaseSync(file)
  db.exec(`DROP TRIGGER day_taken_back;
    DROP TABLE detailed_days;
    ALTER TABLE summed DROP COLUMN detailed_up_to;
    ALTER TABLE summed DROP COLUMN detailed_from;
    PRAGMA user_version = 7`)
}
