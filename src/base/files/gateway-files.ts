/** Names of files that the gateway writes in the directory of the ledger. */
export const RESERVED_FILES: ReadonlySet<string> = new Set(['keys.db', 'capsule-keys.db', 'console.db', 'bodies.db', 'alerts.json'])

/** The socket of `gateway status` and `gateway reload`, in the directory of the ledger. */
export const CONTROL_SOCKET = 'control.sock'

/** Matches suffixes of files that belong to another file: files of SQLite, locks, unfinished writes and corrupt files. */
const PART = /^(?:-wal|-shm|-journal|-opening|-live-.+|\.new|\.last|\.corrupt-.+)?$/

/** @param ledger name of the ledger file */
export function isGatewayFile(name: string, ledger: string): boolean {
  return [ledger, CONTROL_SOCKET, ...RESERVED_FILES].some(base => name.startsWith(base) && PART.test(name.slice(base.length)))
}
