import { Command } from 'commander'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { countText, plural, problemText } from './problems.ts'

const HELP = `
Reads the file as 'serve' would and checks all that can be known without the network: its form,
names that refer to each other, references to the environment, certificates. Every problem is
printed at once as file:line:column, with the line and a hint. Secrets are never printed.

Warnings are about what is allowed but hardly meant: an upstream that no route names, a route that
an earlier one hides, a model in a key's list that no route serves.

Examples:
  gateway check
  gateway check --config /etc/gateway.yaml && systemctl restart gateway
${EXIT_CODES.replace('ended well', 'no error, though there may be warnings')}`

/** `gateway check`: says everything that is wrong with a configuration. */
export function checkCommand(): Command {
  return new Command('check')
    .description('Check a configuration and print every problem in it.')
    .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
    .addHelpText('after', HELP)
    .action(check)
}

function check({ config: file }: { config: string }, command: Command): void {
  try {
    const { config, warnings } = loadConfig(file, process.env)
    if (warnings.length > 0) process.stdout.write(`${problemText(warnings, process.stdout)}\n`)
    const { upstreams, routes, keys } = config
    const counts = { upstream: upstreams.size, route: routes.length, key: keys.length }
    const parts = Object.entries(counts).map(([noun, count]) => plural(count, noun))
    const verdict = warnings.length === 0 ? 'no problems' : countText(warnings)
    process.stdout.write(`${file}: ${verdict} (${parts.join(', ')})\n`)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stdout.write(`${problemText(error.problems, process.stdout)}\n`)
    command.error(`${file}: ${countText(error.problems)}`, { exitCode: EXIT.usage })
  }
}
