/**
 * The pages in the order of the sidebar: what it is, how to do it, reference, background.
 * A page that is not here fails the build.
 */

export interface Page {
  readonly text: string
  /** Without its extension, from the root. */
  readonly link: string
}

export interface Section {
  readonly text: string
  readonly items: readonly Page[]
  /** Factor for the search score of its pages. Absent: 1. */
  readonly searchWeight?: number
}

export const SECTIONS: readonly Section[] = [
  {
    text: 'What it is',
    items: [
      { text: 'The path of a request', link: '/concepts/exchange' },
      { text: 'The route table', link: '/concepts/routes' },
      { text: 'The ledger', link: '/concepts/ledger' },
      { text: 'What it does not do', link: '/what-it-does-not-do' },
      { text: 'Glossary', link: '/glossary' },
    ],
  },
  {
    text: 'Start',
    items: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Recipes', link: '/recipes' },
      { text: 'Add an upstream', link: '/add-an-upstream' },
      { text: 'Credentials of upstreams', link: '/credentials' },
      { text: 'Rotate credentials', link: '/rotate-credentials' },
      { text: 'Migrate from LiteLLM', link: '/migrate-from-litellm' },
    ],
  },
  {
    text: 'Providers',
    items: [
      { text: 'OpenAI', link: '/providers/openai' },
      { text: 'Anthropic', link: '/providers/anthropic' },
      { text: 'Gemini API', link: '/providers/gemini' },
      { text: 'Azure OpenAI', link: '/providers/azure' },
      { text: 'Amazon Bedrock', link: '/providers/bedrock' },
      { text: 'Google Vertex AI', link: '/providers/vertex' },
    ],
  },
  {
    text: 'Clients',
    items: [
      { text: 'All clients', link: '/clients' },
      { text: "A client's own credential", link: '/own-credential' },
      { text: 'OpenAI SDK', link: '/clients/openai' },
      { text: 'Anthropic SDK', link: '/clients/anthropic' },
      { text: 'Google Gen AI SDK', link: '/clients/google-genai' },
      { text: 'Claude Code', link: '/clients/claude-code' },
      { text: 'Codex', link: '/clients/codex' },
      { text: 'Gemini CLI', link: '/clients/gemini-cli' },
      { text: 'Open WebUI', link: '/clients/open-webui' },
    ],
  },
  {
    text: 'Keys, costs, failover',
    items: [
      { text: 'Keys', link: '/keys' },
      { text: 'Callers with tokens', link: '/callers' },
      { text: 'Limits and budgets', link: '/limits' },
      { text: 'Users and tags', link: '/attribution' },
      { text: 'Edits', link: '/edits' },
      { text: 'Checks', link: '/checks' },
      { text: 'Hooks', link: '/hooks' },
      { text: 'Metering and prices', link: '/metering' },
      { text: 'Failover', link: '/failover' },
      { text: 'Translation between protocols', link: '/translation' },
      { text: 'Fault drills', link: '/fault-drills' },
      { text: 'Store bodies', link: '/bodies' },
    ],
  },
  {
    text: 'Operation',
    items: [
      { text: 'Console', link: '/console' },
      { text: 'Single sign-on', link: '/operation/single-sign-on' },
      { text: 'systemd', link: '/operation/systemd' },
      { text: 'Container', link: '/operation/container' },
      { text: 'Kubernetes', link: '/operation/kubernetes' },
      { text: 'TLS', link: '/operation/tls' },
      { text: 'Outgoing proxy', link: '/operation/proxy' },
      { text: 'nginx', link: '/operation/nginx' },
      { text: 'HAProxy', link: '/operation/haproxy' },
      { text: 'Load balancers', link: '/operation/load-balancers' },
      { text: 'Change a running gateway', link: '/operation-reload' },
      { text: 'Log and ledger rows', link: '/operation/log' },
      { text: 'Metrics and traces', link: '/operation/telemetry' },
      { text: 'Alerts', link: '/operation/alerts' },
      { text: 'Workers', link: '/workers' },
      { text: 'More than one machine', link: '/more-than-one-machine' },
      { text: 'Resource limits', link: '/bounds' },
      { text: 'Upgrade', link: '/operation/upgrade' },
      { text: 'Back up the ledger', link: '/operation/backup' },
      { text: 'Security', link: '/security' },
    ],
  },
  {
    text: 'Reference',
    searchWeight: 0.5,
    items: [
      { text: 'Configuration', link: '/reference/configuration' },
      { text: 'Commands', link: '/reference/commands' },
      { text: 'HTTP API', link: '/reference/http-api' },
      { text: 'Console API', link: '/reference/console-api' },
      { text: 'Translated fields', link: '/reference/translation' },
      { text: 'What models accept', link: '/reference/models' },
      { text: 'Errors', link: '/errors' },
      { text: 'Simulator', link: '/simulator' },
      { text: 'Simulator behaviours', link: '/reference/simulator' },
    ],
  },
  {
    text: 'Background',
    searchWeight: 0.1,
    items: [
      { text: 'Architecture', link: '/architecture' },
      { text: 'Scaling', link: '/scaling' },
      { text: 'Benchmarks', link: '/benchmarks' },
      { text: 'Changelog', link: '/changes' },
    ],
  },
]

/**
 * Ranks the pages in the search, so that a guide comes before the changelog.
 *
 * @param id of a result: the address of the page from the root of the site, with its extension and anchor
 */
export function searchWeight(id: string): number {
  const page = id.replace(/(\.html)?(#.*)?$/, '')
  const section = SECTIONS.find(({ items }) => items.some(({ link }) => page.endsWith(link)))
  return section?.searchWeight ?? 1
}
