import { Command } from 'commander'
import { EXIT_CODES } from '../../process/exit.ts'
import { keysBlockCommand, keysUnblockCommand } from './keys-block.ts'
import { keysChangeCommand } from './keys-change.ts'
import { keysCreateCommand } from './keys-create.ts'
import { keysListCommand } from './keys-list.ts'
import { keysRevokeCommand } from './keys-revoke.ts'
import { keysRotateCommand } from './keys-rotate.ts'

const HELP = `
These keys are stored in keys.db next to the ledger, or in PostgreSQL with cluster.postgres, in
addition to the keys of gateway.yaml. Only their SHA-256 is stored. When a command returns, every
running gateway has applied the change.

Examples:
  gateway keys create --name team-a --models "gpt-*,fast" --limit budget=50/month
  gateway keys list
  gateway keys change team-a --limit budget=80/month
  gateway keys rotate team-a --grace 24h
  gateway keys revoke team-a
  gateway keys block --name team-b
${EXIT_CODES}`

export function keysCommand(): Command {
  return new Command('keys')
    .description('Create, list, change, rotate and revoke keys while the gateway runs.')
    .addHelpText('after', HELP)
    .addCommand(keysCreateCommand())
    .addCommand(keysListCommand())
    .addCommand(keysChangeCommand())
    .addCommand(keysRotateCommand())
    .addCommand(keysRevokeCommand())
    .addCommand(keysBlockCommand())
    .addCommand(keysUnblockCommand())
}
