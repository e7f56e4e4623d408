import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Command } from 'commander'
import { formatAddress, parseAddress } from '../config/listen-address.ts'
import type { Address } from '../config/types.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { listenFailure } from '../process/listen-failure.ts'
import { openLog } from '../process/log.ts'
import { onStopSignals } from '../process/signals.ts'

const HELP = `
Runs the provider of 'simulator: true' as a separate server: all endpoints of the three protocols,
without a key and without cost, with delays and faults on demand. Use it for load tests and to
rehearse faults. Each request is logged when it ends.

Examples:
  gateway simulate
  gateway simulate --listen 127.0.0.1:0
${EXIT_CODES}`

export function simulateCommand(): Command {
  return new Command('simulate')
    .description('Run the simulated provider as a separate server.')
    .option('-l, --listen <address>', 'host:port; port 0 picks a free port', '127.0.0.1:8090')
    .addHelpText('after', HELP)
    .action(simulate)
}

async function simulate({ listen }: { listen: string }, command: Command): Promise<void> {
  const address = addressOf(listen, command)
  const { createSimulator } = await import('../simulator/index.ts')
  const { log, flush } = await openLog('info')
  const server = createSimulator({ log })
  await listenOn(server, address, command)
  const { address: host, port } = server.address() as AddressInfo
  const end = (): void => {
    server.close()
    server.closeAllConnections()
  }
  onStopSignals({ first: end, second: end })
  const closed = once(server, 'close')
  log.info({ base: `http://${formatAddress({ host, port })}` }, 'listening')
  await closed
  await flush()
  process.exit(EXIT.ok)
}

function addressOf(text: string, command: Command): Address {
  try {
    return parseAddress(text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return command.error(`error: --listen ${text}: ${error.message}`, { exitCode: EXIT.usage })
  }
}

async function listenOn(server: Server, address: Address, command: Command): Promise<void> {
  server.listen(address)
  try {
    await once(server, 'listening')
  } catch (error) {
    const reason = listenFailure(error)
    if (reason === null) throw error
    command.error(`error: ${reason}`, { exitCode: EXIT.failed })
  }
}
