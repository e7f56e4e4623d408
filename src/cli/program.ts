import { Command } from 'commander'
import { checkCommand } from './check.ts'
import { clusterCommand } from './cluster.ts'
import { EXIT_CODES } from '../process/exit.ts'
import { explainCommand } from './explain.ts'
import { helpCommand } from './help-command.ts'
import { importCommand } from './import.ts'
import { initCommand } from './init.ts'
import { keysCommand } from './keys/keys.ts'
import { ledgerCommand } from './ledger.ts'
import { passwordCommand } from './password.ts'
import { reloadCommand } from './reload.ts'
import { serveCommand } from './serve.ts'
import { simulateCommand } from './simulate.ts'
import { statusCommand } from './status.ts'
import { usageCommand } from './usage.ts'
import { packageVersion } from '../process/version.ts'

const HELP = `
Examples:
  gateway init                         write a gateway.yaml to start from
  gateway check --config gateway.yaml  find mistakes in it
  gateway explain --path /v1/messages  show where a request would go
  gateway serve --config gateway.yaml  run the gateway
  gateway usage --since 24h --by key   show usage and cost by key
  gateway keys create --name team-a    create a key and print it
${EXIT_CODES}`

/** The commands with their options and help. Parsing the arguments runs a command. */
export function program(): Command {
  const gateway = new Command('gateway')
    .description('A reverse proxy for language and media models, configured by one YAML file.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .addHelpText('after', HELP)
    .exitOverride()
  const commands = [
    serveCommand, statusCommand, reloadCommand, checkCommand, explainCommand, usageCommand, keysCommand, clusterCommand, ledgerCommand,
    passwordCommand, simulateCommand, initCommand, importCommand,
  ]
  for (const command of commands) gateway.addCommand(command())
  return addHelpCommands(gateway)
}

/** Adds the parent's settings and the subcommand `help` to every command that has subcommands. */
function addHelpCommands(command: Command): Command {
  if (command.commands.length > 0) command.addCommand(helpCommand(command))
  for (const inner of command.commands) addHelpCommands(inner.copyInheritedSettings(command))
  return command
}
