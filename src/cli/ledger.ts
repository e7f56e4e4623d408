import { hostname } from 'node:os'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { messageOf } from '../base/message-of.ts'
import { formatNumber } from '../base/text-table.ts'
import { copyLedger } from '../ledger/copy.ts'
import { EXIT, EXIT_CODES } from './exit.ts'

const HELP = `
Copies the requests of a SQLite ledger to the ledger of several gateways (cluster.postgres). It can
be interrupted and run again: it continues where it was, and copies no request twice. The gateway
that writes the file may run; one with cluster.postgres sends its requests by itself. A file of an
older version is brought up to date. Without a password in the URL, PGPASSWORD is used.

Examples:
  gateway ledger copy --from data/gateway.db --to postgres://gateway@db.example.com/gateway
${EXIT_CODES}`

/** ms between two lines about the progress */
const PROGRESS_MS = 5_000

/** `gateway ledger`: the ledger as a whole. */
export function ledgerCommand(): Command {
  return new Command('ledger')
    .description('Move a ledger to PostgreSQL.')
    .addHelpText('after', HELP)
    .addCommand(new Command('copy')
      .description('Copy a ledger of SQLite to PostgreSQL.')
      .requiredOption('--from <file>', 'the SQLite ledger')
      .requiredOption('--to <url>', 'the database, such as postgres://user:password@host/database', parseUrl)
      .option('--instance <name>', 'the name of the gateway that wrote the file', hostname())
      .addHelpText('after', HELP)
      .action(copy))
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
