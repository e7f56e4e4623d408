import type { Command } from 'commander'
import { program } from '../../src/cli/program.ts'
import { code, generatedFrom } from './markdown.ts'

/** docs/reference/commands.md: what each command prints of itself. */
export function commandsPage(): string {
  const gateway = program()
  return `${generatedFrom('the commands themselves')}

# Commands

All commands with their options and exit codes, as \`gateway COMMAND --help\` prints them.

## ${code('gateway')}

${helpOf(gateway)}

${commandsOf(gateway).map(command => section(command, 'gateway ')).join('\n\n')}
`
}

/** All but `help`, which says what stands here. */
function commandsOf(command: Command): Command[] {
  return command.commands.filter(each => each.name() !== 'help')
}

function section(command: Command, parent: string): string {
  const name = `${parent}${command.name()}`
  const inner = commandsOf(command).map(each => section(each, `${name} `))
  return [`## ${code(name)}`, helpOf(command), ...inner].join('\n\n')
}

function helpOf(command: Command): string {
  let help = ''
  command.configureOutput({
    writeOut: text => { help += text },
    getOutHelpWidth: () => 100,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  return `\`\`\`text\n${help.trim()}\n\`\`\``
}
