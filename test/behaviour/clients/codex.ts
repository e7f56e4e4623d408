import { KEY } from '../../support/gateway.ts'
import { PROMPT, SOLUTION, type Client } from './command-line.ts'

export const PATCH = `*** Begin Patch\n*** Add File: solution.txt\n+${SOLUTION.trim()}\n*** End Patch`

/** With a model whose tools are the protocol's own. */
export const CODEX: Client = {
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
    { name: 'tool_search', isToolSearch: true, input: { query: 'agents' } },
    { name: 'view_image', input: { path: 'picture.png' } },
    { name: 'exec_command', input: { cmd: 'wc -c < question.txt > counted.txt' } },
  ] }),
  write: () => ({ calls: [{ name: 'apply_patch', isFreeform: true, input: { input: PATCH } }] }),
}
