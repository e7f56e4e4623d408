/** What the gateway keeps beside the ledger, in files of their own. */
export const RESERVED_FILES: ReadonlySet<string> = new Set(['keys.db', 'capsule-keys.db', 'console.db', 'bodies.db', 'alerts.json'])

/** The socket of `gateway status` and `gateway reload`, beside the ledger. */
export const CONTROL_SOCKET = 'control.sock'

/** What is put beside a file: by SQLite, by a lock, while it is written, and when it is broken. */
const PART = /^(?:-wal|-shm|-journal|-opening|-live-.+|\.new|\.last|\.corrupt-.+)?$/

/** Whether a file beside the ledger is the gateway's. @param ledger the name of the ledger's file */
export function isGatewayFile(name: string, ledger: string): boolean {
  return [ledger, CONTROL_SOCKET, ...RESERVED_FILES].some(base => name.startsWith(base) && PART.test(name.slice(base.length)))
}
