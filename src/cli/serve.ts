import { Command } from 'commander'
import type { Logger } from 'pino'
import type { Loaded } from '../config/load.ts'
import { placeOf } from '../config/problem.ts'
import type { RunningGateway } from '../server/server.ts'
import { exampleRequest } from './example-request.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { listenFailure } from './listen-failure.ts'
import { openLog } from './log.ts'
import type { OpenLog } from './log.ts'
import { loadOrFail } from './problems.ts'
import { onStopSignals } from './signals.ts'
import { packageVersion } from './version.ts'

const HELP = `
Reads the configuration, listens, and serves until a signal ends it. On a terminal the log is for
people; otherwise it is one JSON object a line on standard output, and the line with msg
"listening" tells the addresses. Port 0 picks a free port, and that line tells which.

Signals:
  SIGTERM, SIGINT  take no new requests, finish those that run within server.drain, then exit
  a second one     close every connection and exit now

Examples:
  gateway serve
  gateway serve --config /etc/gateway.yaml
  OPENAI_API_KEY=... gateway serve -c gateway.yaml
${EXIT_CODES.replace('failed while running', 'failed while running, or cut requests off at the end')}`

/** `gateway serve`: runs the gateway until a signal ends it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the gateway.')
    .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
    .addHelpText('after', HELP)
    .action(serve)
}

async function serve({ config: file }: { config: string }, command: Command): Promise<void> {
  const loaded = loadOrFail(file, command)
  const opened = openLog(loaded.config.log.level)
  const { log } = opened
  for (const problem of loaded.warnings) log.warn(`${placeOf(problem)}: ${problem.message}`)
  endLoudly(opened)

  const gateway = await start(loaded, log, command)
  // Who reads the announcement may send a signal at once.
  const stopped = untilStopped(gateway, log)
  announce(loaded, gateway, log)
  const cut = await stopped
  log.info({ cut }, 'ended')
  await opened.flush()
  process.exit(cut === 0 ? EXIT.ok : EXIT.failed)
}

async function start({ config }: Loaded, log: Logger, command: Command): Promise<RunningGateway> {
  // Only this command needs the server's modules: the others start faster without.
  const { startGateway } = await import('../server/server.ts')
  try {
    return await startGateway(config, { log, version: packageVersion() })
  } catch (error) {
    const reason = listenFailure(error)
    if (reason === null) throw error
    return command.error(`error: ${reason}`, { exitCode: EXIT.failed })
  }
}

/** The addresses are told whatever the log level is: nobody else knows the port that 0 became. */
function announce({ config, publicKey }: Loaded, { addresses }: RunningGateway, log: Logger): void {
  const { base, console } = addresses
  log.child({}, { level: 'info' }).info({ base, ...console !== null && { console } }, 'listening')
  const request = exampleRequest(config, base, publicKey)
  const { isTTY } = process.stdout
  if (request === null || !(isTTY || publicKey !== null)) return
  // Standard output is for JSON lines where it is no terminal.
  const stream = isTTY ? process.stdout : process.stderr
  stream.write(`\nTry it:\n\n${request}\n\n`)
}

/** @returns how many exchanges the end cut off */
function untilStopped(gateway: RunningGateway, log: Logger): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  onStopSignals({
    first: signal => {
      log.info({ signal }, 'draining')
      void gateway.drain().then(resolve)
    },
    second: signal => {
      log.warn({ signal }, 'closing now')
      resolve(gateway.close())
    },
  })
  return promise
}

/** A fault of the gateway itself must not end it without a word in the log. */
function endLoudly({ log, flushSync }: OpenLog): void {
  process.once('uncaughtException', error => {
    log.fatal(error, 'ended by a fault of the gateway')
    flushSync()
    process.exit(EXIT.failed)
  })
}
