import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { messagesVendor } from '../../support/vendors/messages.ts'
import { responsesVendor } from '../../support/vendors/responses.ts'
import { SOLUTION, PROMPT, holdSession, isMissing } from './command-line.ts'
import type { Client } from './command-line.ts'

const CODEX: Client = {
  command: 'codex',
  protocol: 'responses',
  args: ({ url }) => [
    'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '--model', 'gpt-5.5',
    ...Object.entries({
      model_provider: 'gateway', 'model_providers.gateway.name': 'gateway', 'model_providers.gateway.base_url': `${url}/v1`,
      'model_providers.gateway.env_key': 'GATEWAY_API_KEY', 'model_providers.gateway.wire_api': 'responses',
    }).flatMap(([key, value]) => ['-c', `${key}=${JSON.stringify(value)}`]),
    '-c', 'analytics.enabled=false', '--disable', 'plugins', '--disable', 'apps',
    PROMPT,
  ],
  env: () => ({ GATEWAY_API_KEY: KEY }),
  look: () => ({ calls: [
    { name: 'exec_command', input: { cmd: 'cat question.txt' } },
    { name: 'exec_command', input: { cmd: 'wc -c < question.txt > counted.txt' } },
  ] }),
  write: () => ({ calls: [{ name: 'apply_patch', isFreeform: true, input: { input: `*** Begin Patch\n*** Add File: solution.txt\n+${SOLUTION.trim()}\n*** End Patch` } }] }),
}

t.test('Codex', { skip: isMissing('codex') }, async t => {
  for (const vendor of [responsesVendor, messagesVendor]) {
    t.test(`over ${vendor.protocol}`, t => holdSession(t, CODEX, vendor))
  }
})
