import { Command } from 'commander'
import { didYouMean } from '../config/nearest.ts'
import { EXIT } from '../process/exit.ts'

/** A command that prints the help of the parent, or of one of its subcommands. */
export function helpCommand(parent: Command): Command {
  return new Command('help')
    .description('Print the help of a command.')
    .argument('[command...]')
    .action((names: readonly string[], _options: unknown, command: Command) => {
      let found = parent
      for (const name of names) {
        const inner = found.commands.find(each => each.name() === name)
        if (inner === undefined) return command.error(unknownCommandMessage(found, name), { exitCode: EXIT.usage })
        found = inner
      }
      found.outputHelp()
    })
}

function unknownCommandMessage(command: Command, name: string): string {
  const names = command.commands.map(each => each.name())
  return `error: ${command.name()} has no command "${name}"${didYouMean(name, names)}`
}
