import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'

const SETTING = '/proc/sys/net/ipv4/tcp_migrate_req'

/**
 * Warns if Linux resets waiting connections when a listener of a shared port closes. With the right setting, Linux passes them to another
 * listener.
 * Source: Linux, Documentation/networking/ip-sysctl.rst, tcp_migrate_req (5.14).
 */
export function warnOfResets(log: Logger): void {
  if (readSetting() !== '0') return
  const message = 'server.reuse_port: connections that arrive while another gateway takes over may be reset'
  log.warn(`${message}; sysctl net.ipv4.tcp_migrate_req=1 prevents that`)
}

function readSetting(): string | null {
  try {
    return readFileSync(SETTING, 'utf8').trim()
  } catch {
    // The setting does not exist: the system is not Linux, or the kernel is older.
    return null
  }
}
