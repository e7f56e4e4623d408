import { Command } from 'commander'
import type { ReloadReport } from '../gateway/control.ts'
import { askGateway } from './common/ask-gateway.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { operator } from './common/key-store-command.ts'
import { plural } from './common/problems.ts'

export function reloadCommand(): Command {
  return new Command('reload')
    .description('Have the running gateway read its configuration again, and print what changed.')
    .addOption(configOption('the configuration, which names the ledger'))
    .addHelpText('after', `
The gateway reads its own file again, as at a SIGHUP. A configuration with an error changes nothing:
every problem is printed, and the exit code is 2.

Examples:
  gateway reload
  gateway reload --config /etc/gateway.yaml
${EXIT_CODES.replace('wrong option or configuration', 'wrong option, or the configuration was rejected')}`)
    .action(reload)
}

async function reload({ config: file }: { readonly config: string }, command: Command): Promise<void> {
  const report = await askGateway<ReloadReport>(file, 'POST', `/reload?${new URLSearchParams({ by: operator().actor })}`, command)
  if (!report.applied) {
    process.stderr.write(`${report.problems.join('\n\n')}\n\n`)
    command.error(`not reloaded: ${plural(report.problems.length, 'problem')}; the previous configuration stays active`, { exitCode: EXIT.usage })
  }
  const { changes, restart_needed: pending, warnings } = report
  for (const warning of warnings) process.stderr.write(`${warning}\n`)
  process.stdout.write(changes.length === 0 ? 'Reloaded: nothing changed\n' : `Reloaded:\n${changes.map(each => `  ${each}\n`).join('')}`)
  if (pending.length > 0) process.stdout.write(`Restart to apply: ${pending.join(', ')}\n`)
}
