import { hostname } from 'node:os'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { messageOf } from '../base/message-of.ts'
import { formatNumber } from '../base/text-table.ts'
import { compactLedger } from '../ledger/file/compact.ts'
import { copyLedger } from '../cluster/ledger/copy.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { loadForLedger } from './common/problems.ts'

const HELP = `
Copies the requests of a SQLite ledger to the ledger of several gateways (cluster.postgres). It can
be interrupted and run again: it continues where it was, and copies no request twice. The gateway
that writes the file may run; one with cluster.postgres sends its requests by itself. A file of an
older version is brought up to date. Without a password in the URL, PGPASSWORD is used.

Examples:
  gateway ledger copy --from data/gateway.db --to postgres://gateway@db.example.com/gateway
${EXIT_CODES}`

const COMPACT_HELP = `
Writes the file anew. This needs as much free space as the file has, and takes some seconds for each
gigabyte. A gateway that uses the file may run: its rows wait in memory meanwhile. Do this once for a
file of an older version. Later a gateway gives the room of deleted rows back by itself.

Examples:
  gateway ledger compact
  gateway ledger compact --config /etc/gateway.yaml
${EXIT_CODES}`

const PROGRESS_MS = 5_000

export function ledgerCommand(): Command {
  return new Command('ledger')
    .description('Move a ledger to PostgreSQL, or make its file smaller.')
    .addHelpText('after', HELP)
    .addCommand(new Command('copy')
      .description('Copy a ledger of SQLite to PostgreSQL.')
      .requiredOption('--from <file>', 'the SQLite ledger')
      .requiredOption('--to <url>', 'the database, such as postgres://user:password@host/database', parseUrl)
      .option('--instance <name>', 'the name of the gateway that wrote the file', hostname())
      .addHelpText('after', HELP)
      .action(copy))
    .addCommand(new Command('compact')
      .description('Give the room that deleted rows have left back to the system.')
      .addOption(configOption('the configuration, which names the ledger'))
      .addHelpText('after', COMPACT_HELP)
      .action(compact))
}

function compact({ config }: { readonly config: string }, command: Command): void {
  const { ledger } = loadForLedger(config, command).config
  if (ledger === null) command.error(`error: ${config} has no ledger: { file: ... }`, { exitCode: EXIT.usage })
  try {
    const { before, after } = compactLedger(ledger.file)
    process.stdout.write(`Compacted ${ledger.file}: ${formatNumber(before)} bytes before, ${formatNumber(after)} after.\n`)
  } catch (error) {
    command.error(`error: ${ledger.file}: ${messageOf(error)}`, { exitCode: EXIT.failed })
  }
}

interface Options {
  readonly from: string
  readonly to: string
  readonly instance: string
}

async function copy({ from: file, to: url, instance }: Options, command: Command): Promise<void> {
  let reportedAt = performance.now()
  const onProgress = (rows: number): void => {
    if (performance.now() - reportedAt < PROGRESS_MS) return
    reportedAt = performance.now()
    process.stderr.write(`${formatNumber(rows)} requests copied\n`)
  }
  try {
    const { rows, refused, daysWithoutRows } = await copyLedger({ file, url, instance, onProgress })
    process.stdout.write(`Copied ${formatNumber(rows)} requests of ${file}.\n`)
    if (daysWithoutRows > 0) {
      process.stderr.write(`warning: of ${formatNumber(daysWithoutRows)} days the file has sums only, which are not copied\n`)
    }
    if (refused.length > 0) command.error(`error: PostgreSQL refuses these requests: ${refused.join(', ')}`, { exitCode: EXIT.failed })
  } catch (error) {
    if (error instanceof CommanderError || !(error instanceof Error) || !('code' in error)) throw error
    command.error(`error: ${file}: ${messageOf(error)}`, { exitCode: EXIT.failed })
  }
}

function parseUrl(text: string): string {
  const url = URL.parse(text)
  if (url !== null && /^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1) return text
  throw new InvalidArgumentError('This is not a URL such as postgres://user:password@host:5432/database.')
}
