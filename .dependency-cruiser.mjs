// The order of the folders of src, from the ground up. A folder imports folders of lower floors alone, never
// one of its own floor or above: so nothing goes in circles, and each floor can be read without those above it.
const FLOORS = [
  ['base', 'console/api'],
  ['base/files', 'base/secrets', 'base/threads'],
  ['protocols/neutral', 'patches'],
  ['protocols/neutral/dialects', 'protocols/neutral/translate'],
  ['config', 'protocols/json', 'protocols/http', 'cluster/postgres'],
  ['config/text'],
  ['config/sections'],
  ['config/load'],
  ['protocols/usage', 'limits/queue'],
  ['protocols/events'],
  ['protocols/endpoint'],
  ['protocols/request'],
  ['protocols/vendors', 'providers/shared', 'attribution', 'auth', 'ledger', 'limits', 'routing', 'proxy/http'],
  ['auth/callers', 'ledger/sums', 'limits/workers', 'proxy/client'],
  ['ledger/file'],
  ['ledger/read', 'ledger/write'],
  [
    'upstreams/credentials', 'proxy/upstream', 'transcripts', 'cluster/valkey', 'cluster/keys', 'cluster/ledger', 'cluster/hints',
    'protocols/chat', 'protocols/responses', 'protocols/messages', 'protocols/generate',
    'protocols/converse',
    'providers/azure', 'providers/bedrock', 'providers/vertex',
  ],
  ['protocols/media'],
  ['protocols', 'providers', 'pricing', 'console/store', 'telemetry', 'cluster', 'cluster/limits'],
  ['upstreams', 'console/reports', 'policy/checks', 'policy/hooks', 'policy/edits'],
  ['pipeline/exchange'],
  ['pipeline/parts'],
  ['pipeline/respond', 'pipeline/settle'],
  ['pipeline/attempt'],
  ['pipeline'],
  ['gateway/alerts', 'gateway/listen', 'console/http', 'console/state'],
  ['console/alerts', 'console/login'],
  ['gateway', 'console'],
  ['process'],
  ['cli/common'],
  ['cli/keys'],
  ['cli'],
]

/** Workspaces of their own: who imports them is said below. */
const WORKSPACES = ['simulator', 'import', 'console/web']

/** Matches the files of a folder, without its folders. */
const filesOf = folders => `^src/(${folders.join('|')})/[^/]+$`

const upward = FLOORS.map((folders, floor) => ({
  name: `floor-${floor}-imports-lower-floors`,
  comment: `${folders.join(', ')}: a folder imports itself and the floors below it.`,
  severity: 'error',
  from: { path: `^src/(${folders.join('|')})/([^/]+)$` },
  to: {
    path: '^src/',
    pathNot: [
      '^src/$1/[^/]+$',
      ...FLOORS.slice(0, floor).map(filesOf),
      ...WORKSPACES.map(name => `^src/${name}/`),
    ],
  },
}))

export default {
  forbidden: [
    ...upward,
    {
      name: 'every-folder-has-a-floor',
      comment: 'A new folder needs a line above. A file of its own in src is an exception, and there is none.',
      severity: 'error',
      from: {},
      to: {
        path: '^src/',
        pathNot: [...FLOORS.map(filesOf), ...WORKSPACES.map(name => `^src/${name}/`)],
      },
    },
    {
      name: 'no-circular',
      comment: 'Modules that import each other cannot be read one after the other.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-circular-folders',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'A module that nothing imports is dead.',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: '\\.d\\.ts$' },
      to: {},
    },
    {
      name: 'config-is-read-as-types',
      comment: 'A part gets what it needs of the configuration; only those that compose the parts read it.',
      severity: 'error',
      from: { path: '^src/(auth|upstreams/credentials|routing|limits|proxy|pricing|ledger|transcripts|protocols|providers)/' },
      to: { path: '^src/config/', pathNot: '^src/config/[a-z-]*types\\.ts$' },
    },
    {
      name: 'workspaces-stand-alone',
      comment: 'The simulator must not share code with what it tests; an import knows the configuration alone.',
      severity: 'error',
      from: { path: '^src/(simulator|import)/' },
      to: { path: '^src/', pathNot: ['^src/$1/', '^src/config/'] },
    },
    {
      name: 'simulator-shares-nothing',
      severity: 'error',
      from: { path: '^src/simulator/' },
      to: { path: '^src/', pathNot: '^src/simulator/' },
    },
    {
      name: 'workspaces-are-started-by-gateway-and-cli',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli|gateway|process|simulator|import)/' },
      to: { path: '^src/(simulator|import)/' },
    },
    {
      name: 'only-one-file-imports-http-proxy-3',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/proxy/upstream/http-proxy\\.ts$' },
      to: { path: 'node_modules/http-proxy-3/' },
    },
    {
      name: 'only-the-proxy-imports-undici',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/proxy/' },
      to: { path: 'node_modules/undici/' },
    },
    {
      name: 'the-package-brings-what-it-imports',
      comment: 'An installed gateway has the dependencies, and not the development ones.',
      severity: 'error',
      from: { path: '^(src|bin)/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'],
        pathNot: '^@types/',
      },
    },
  ],
  options: {
    exclude: { path: '^src/console/web/' },
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
}
