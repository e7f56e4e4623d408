import { Command, CommanderError } from 'commander'
import { checkCommand } from './check.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { explainCommand } from './explain.ts'
import { initCommand } from './init.ts'
import { serveCommand } from './serve.ts'
import { simulateCommand } from './simulate.ts'
import { usageCommand } from './usage.ts'
import { packageVersion } from './version.ts'

const HELP = `
Examples:
  gateway init                         write a gateway.yaml to start from
  gateway check --config gateway.yaml  say what is wrong with it
  gateway explain --path /v1/messages    say where a request would go
  gateway serve --config gateway.yaml  serve it
  gateway usage --since 24h --by key   say who used what, and what it cost
${EXIT_CODES}`

function program(): Command {
  const gateway = new Command('gateway')
    .description('A reverse proxy for language and media models, configured by one YAML file.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .addHelpText('after', HELP)
    .exitOverride()
  for (const command of [serveCommand, checkCommand, explainCommand, usageCommand, simulateCommand, initCommand]) {
    gateway.addCommand(command().copyInheritedSettings(gateway))
  }
  return gateway
}

/** @returns the exit code */
async function run(argv: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(argv)
    return EXIT.ok
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Commander has printed it. Help and version end well; a command says its own code.
    const isOurs = error.code === 'commander.error'
    return isOurs || error.exitCode === EXIT.ok ? error.exitCode : EXIT.usage
  }
}

// A reader such as `head` may leave early: that is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

process.exitCode = await run(process.argv)
