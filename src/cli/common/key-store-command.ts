import { userInfo } from 'node:os'
import { Command, CommanderError } from 'commander'
import type { Actor } from '../../auth/audit.ts'
import { keyFileOf } from '../../auth/key-file.ts'
import { readBlocks, readKeys } from '../../auth/key-reader.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { openExistingKeys } from '../../cluster/keys/open-keys.ts'
import type { Config } from '../../config/types.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { configOption } from './config-option.ts'
import { EXIT } from '../../process/exit.ts'
import { loadForLedger } from './problems.ts'

/** Maximum ms to wait until running gateways apply a change. They check the store at least every second. */
export const PUBLISH_TIMEOUT = 2_500

/** The user who runs the command, for the list of audit events. */
export function operator(): Actor {
  return { actor: `command line: ${userName()}`, address: null }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container, the user id may have no name.
    return String(process.getuid?.() ?? 'unknown')
  }
}

export function storeCommand(name: string): Command {
  return new Command(name).addOption(configOption('the configuration, which names the ledger'))
}

/** The configuration, and the key store beside the ledger. If there is no ledger, ends the command with exit code 2. */
export function keyStoreOf(from: string, command: Command): { config: Config; file: string } {
  const { config } = loadForLedger(from, command)
  if (config.ledger !== null) return { config, file: keyFileOf(config.ledger.file) }
  return command.error(`error: ${from} has no ledger: { file: ... }; keys are stored in its directory`, { exitCode: EXIT.usage })
}

/** Runs `work`. If the store or the system fails, ends the command with exit code 1. */
export async function exitOnStoreError<T>(file: string, command: Command, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof DatabaseError) {
      const remedy = error.code === 'timeout' ? 'gateway keys list shows whether the change was stored' : 'nothing was changed'
      return command.error(`error: the keys are in PostgreSQL: ${error.message}; ${remedy}`, { exitCode: EXIT.failed })
    }
    const isSystems = error instanceof Error && 'code' in error && !(error instanceof CommanderError)
    if (!(error instanceof StoreError) && !isSystems) throw error
    return command.error(`error: ${file}: ${error.message}`, { exitCode: EXIT.failed })
  }
}

/** Ends the command with exit code 1. */
export function fail(message: string, command: Command): never {
  return command.error(`error: ${message}`, { exitCode: EXIT.failed })
}

/** The stored keys. If PostgreSQL is unreachable, returns this gateway's copy of them. */
export async function storedKeys({ cluster }: Config, file: string) {
  using store = openExistingKeys(file, cluster)
  try {
    return await store?.list() ?? { keys: [], blocks: [] }
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error
    process.stderr.write(`warning: PostgreSQL cannot be read, so these are the keys that this gateway knows: ${error.message}\n`)
    return { keys: readKeys(file), blocks: readBlocks(file) }
  }
}
