/** The pages in the order in which they are read. A page that is not here fails the build. */

export interface Page {
  readonly text: string
  /** Without its extension, from the root. */
  readonly link: string
}

export interface Section {
  readonly text: string
  readonly items: readonly Page[]
}

export const SECTIONS: readonly Section[] = [
  {
    text: 'Start',
    items: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Add an upstream', link: '/add-an-upstream' },
      { text: 'Migrate from LiteLLM', link: '/migrate-from-litellm' },
    ],
  },
  {
    text: 'Clients',
    items: [
      { text: 'All clients', link: '/clients' },
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
    text: 'Concepts',
    items: [
      { text: 'Route table', link: '/concepts/routes' },
      { text: 'Exchange', link: '/concepts/exchange' },
      { text: 'Ledger and certainty', link: '/concepts/ledger' },
      { text: 'Metering and prices', link: '/metering' },
      { text: 'Limits and budgets', link: '/limits' },
      { text: 'Keys', link: '/keys' },
      { text: 'Failover and resume', link: '/failover' },
      { text: 'Bounds', link: '/bounds' },
    ],
  },
  {
    text: 'Operation',
    items: [
      { text: 'The console', link: '/console' },
      { text: 'systemd', link: '/operation/systemd' },
      { text: 'Container', link: '/operation/container' },
      { text: 'TLS', link: '/operation/tls' },
      { text: 'Behind nginx', link: '/operation/nginx' },
      { text: 'Change a running gateway', link: '/operation-reload' },
      { text: 'Log and rows', link: '/operation/log' },
      { text: 'Upgrade', link: '/operation/upgrade' },
      { text: 'Back up the ledger', link: '/operation/backup' },
      { text: 'Keeping bodies', link: '/bodies' },
      { text: 'Several processes', link: '/workers' },
      { text: 'Fault drills', link: '/fault-drills' },
      { text: 'Security', link: '/security' },
    ],
  },
  {
    text: 'Reference',
    items: [
      { text: 'Configuration', link: '/reference/configuration' },
      { text: 'Commands', link: '/reference/commands' },
      { text: 'HTTP API', link: '/reference/http-api' },
      { text: 'Console API', link: '/reference/console-api' },
      { text: 'Errors', link: '/errors' },
      { text: 'Simulator', link: '/simulator' },
      { text: 'Simulator behaviours', link: '/reference/simulator' },
      { text: 'Changes', link: '/changes' },
    ],
  },
  {
    text: 'Contribute',
    items: [
      { text: 'Architecture', link: '/architecture' },
      { text: 'Benchmarks', link: '/benchmarks' },
    ],
  },
]
