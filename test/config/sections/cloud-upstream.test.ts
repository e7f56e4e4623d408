import t from 'tap'
import { problems, load } from '../../behaviour/config/loading.ts'

const withUpstream = (upstream: string) => `upstreams: { demo: { ${upstream} } }\nroutes: [{ to: demo }]\nauth: open\n`

const PLACES: readonly (readonly [upstream: string, url: string, expected: object])[] = [
  ['azure: { endpoint: "https://x.openai.azure.com" }', 'https://x.openai.azure.com/', { provider: { kind: 'azure', apiVersion: 'v1' }, speaks: ['chat', 'responses', 'media'] }],
  ['azure: { endpoint: "https://x.openai.azure.com", api_version: 2025-04-01-preview }', 'https://x.openai.azure.com/', { provider: { apiVersion: '2025-04-01-preview' } }],
  ['bedrock: { region: eu-west-1 }', 'https://bedrock-runtime.eu-west-1.amazonaws.com/', { provider: { kind: 'bedrock' }, speaks: ['messages'] }],
  ['bedrock: { region: cn-north-1 }', 'https://bedrock-runtime.cn-north-1.amazonaws.com.cn/', {}],
  ['bedrock: { region: eu-west-1, endpoint: "https://vpce.example" }, speaks: [converse]', 'https://vpce.example/', { speaks: ['converse'] }],
  ['vertex: { project: p }', 'https://aiplatform.googleapis.com/', { provider: { kind: 'vertex', project: 'p', location: 'global' }, speaks: null }],
  ['vertex: { project: p, location: us }', 'https://aiplatform.us.rep.googleapis.com/', {}],
  ['vertex: { project: p, location: eu }', 'https://aiplatform.eu.rep.googleapis.com/', {}],
  ['vertex: { project: p, location: us-central1 }', 'https://us-central1-aiplatform.googleapis.com/', { provider: { location: 'us-central1' } }],
  ['vertex: { project: "example.com:p-1", endpoint: "http://127.0.0.1:9" }', 'http://127.0.0.1:9/', {}],
]

for (const [upstream, url, expected] of PLACES) {
  t.test(`requests to an upstream at ${upstream} are sent to ${url}`, async t => {
    const { config } = load(t, withUpstream(upstream))
    t.equal(config.upstreams.get('demo')?.url?.href, url)
    t.match(config.upstreams.get('demo'), expected)
  })
}

const PROBLEMS: readonly (readonly [upstream: string, message: RegExp])[] = [
  ['azure: { endpoint: "https://x.example", api_version: v2 }', /^this is neither v1 nor a date/],
  ['azure: { endpoint: "https://x.example", api_version: 2025-04-01-beta }', /^this is neither v1 nor a date/],
  ['azure: { endpoint: "https://x.example/openai" }', /^an endpoint is a scheme and a host/],
  ['azure: { endpoint: "https://x.example/?a" }', /^an endpoint is a scheme and a host/],
  ['azure: { endpoint: "http://x.example" }', /^this is not an https URL/],
  ['bedrock: { region: eu-west-1, endpoint: "https://x.example/#a" }', /^an endpoint is a scheme and a host/],
  ['vertex: { project: p, location: "US central" }', /^this is not a location/],
  ['vertex: { project: "p/q" }', /^this is not a project id/],
  ['vertex: { project: p }, speaks: [chat]', /^the model decides which protocol Vertex AI speaks/],
  ['vertex: {}', /^a project is needed, unless auth is google/],
  ['vertex: {}, auth: { bearer: sk-1 }', /^a project is needed, unless auth is google/],
  ['vertex: {}, auth: { pool: [{ google: {} }, { bearer: sk-1 }] }', /^a project is needed, unless auth is google/],
]

for (const [upstream, message] of PROBLEMS) {
  t.test(`an upstream at ${upstream} is refused`, async t => {
    t.match(problems(t, withUpstream(upstream)).filter(({ severity }) => severity === 'error'), [{ line: 1, message }])
  })
}
