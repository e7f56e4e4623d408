import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { stringify } from 'yaml'
import type { Auth } from '../../src/config/auth-types.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import type { Config, Route } from '../../src/config/types.ts'
import { importLitellm } from '../../src/import/litellm.ts'
import type { Imported } from '../../src/import/litellm.ts'
import { readVirtualKeys } from '../../src/import/litellm-keys.ts'
import { ImportError } from '../../src/import/source.ts'

/** Loads an imported configuration with a value for each variable; fails if there is a problem. */
function load(t: Test, { yaml, variables }: Imported): Config {
  const file = join(t.testdir({}), 'gateway.yaml')
  writeFileSync(file, yaml)
  const values = variables.map(name => [
    name, /BASE|URL/.test(name) ? 'https://example.com' : name === 'REGION' ? 'us-east-1' : `${name}-0123456789abcdef`,
  ])
  return loadConfig(file, Object.fromEntries(values) as Record<string, string>).config
}

function settings(imported: Imported): string[] {
  return imported.notes.map(({ setting }) => setting)
}

function routeOf({ routes }: Config, model: string): Route {
  return routes.find(({ models }) => models?.includes(model)) as Route
}

/**
 * Golden files: the result and the notes stand beside each configuration, to the
 * letter. After a change that is meant, `npx tap --snapshot` writes them anew.
 */
const GOLDEN = new URL('litellm/', import.meta.url)

t.test('a header of a pass-through endpoint can have the name __proto__ or constructor', async t => {
  const { yaml } = importLitellm(`
model_list: [{ model_name: m, litellm_params: { model: openai/gpt-4o, api_key: os.environ/KEY } }]
general_settings:
  pass_through_endpoints:
    - { path: /v1/x, target: "https://example.com/v1/x", headers: { __proto__: a, constructor: b } }
`)
  t.match(yaml, /__proto__: a, constructor: b/)
})

for (const name of readdirSync(GOLDEN).filter(file => /^[a-z]+\.yaml$/.test(file)).sort()) {
  t.test(name, async t => {
    const imported = importLitellm(readFileSync(new URL(name, GOLDEN), 'utf8'))
    const notes = imported.notes.map(({ place, setting, text }) => `${place}: ${setting}: ${text}\n`).join('')
    for (const [suffix, text] of [['.result.yaml', imported.yaml], ['.notes.txt', notes]] as const) {
      const golden = new URL(name.replace('.yaml', suffix), GOLDEN)
      if (process.env['TAP_SNAPSHOT'] === '1') writeFileSync(golden, text)
      t.equal(text, readFileSync(golden, 'utf8'))
    }
    t.ok(load(t, imported).routes.length > 0)
    t.notMatch(imported.yaml + notes, /literal-secret/, 'no secret of the file is copied')
  })
}

t.test('a target has a model only if the model of the provider differs from the model name', async t => {
  const config = load(t, importLitellm(`
model_list:
  - { model_name: gpt-4.1, litellm_params: { model: openai/gpt-4.1 } }
  - { model_name: quick, litellm_params: { model: gpt-4.1-mini } }
  - { model_name: claude-haiku-4-5, litellm_params: { model: claude-haiku-4-5 } }
`))
  t.match(routeOf(config, 'gpt-4.1').targets, [{ upstream: { name: 'openai' }, model: null }])
  t.match(routeOf(config, 'quick').targets, [{ upstream: { name: 'openai' }, model: 'gpt-4.1-mini' }])
  t.match(routeOf(config, 'claude-haiku-4-5').targets, [{ upstream: { name: 'anthropic' } }])
  t.match(config.upstreams.get('anthropic')?.auth, { headers: ['x-api-key'], value: /^ANTHROPIC_API_KEY/ })
})

t.test('a /v1 at the end of an api_base is removed', async t => {
  for (const [base, url] of [
    ['http://10.0.0.1:8000/v1', 'http://10.0.0.1:8000/'],
    ['http://10.0.0.1:8000/v1/', 'http://10.0.0.1:8000/'],
    ['http://10.0.0.1:8000', 'http://10.0.0.1:8000/'],
    ['https://example.com/llm/v1', 'https://example.com/llm'],
  ] as const) {
    const imported = importLitellm(stringify({
      model_list: [
        { model_name: 'm', litellm_params: { model: 'openai/m', api_base: base, api_key: 'os.environ/K' } },
      ],
    }))
    t.equal(load(t, imported).upstreams.get('openai')?.url?.href, url, base)
  }
})

t.test('fallbacks are targets after the targets of the model', async t => {
  const list = (names: readonly string[]) => names.map(name => ({
    model_name: name,
    litellm_params: { model: 'openai/x', api_base: `http://${name}:1`, api_key: 'os.environ/K' },
  }))
  const one = load(t, importLitellm(stringify({
    model_list: list(['a', 'b']), router_settings: { num_retries: 1, fallbacks: [{ a: ['b'] }] },
  })))
  t.match(routeOf(one, 'a'), { strategy: 'ordered', retries: 2 })
  t.equal(routeOf(one, 'a').targets.length, 2)
  const two = load(t, importLitellm(stringify({
    model_list: list(['a', 'a', 'b']).map((entry, index) => ({
      ...entry, litellm_params: { ...entry.litellm_params, api_base: `http://h${index}:1` },
    })),
    litellm_settings: { default_fallbacks: ['b'] },
  })))
  t.equal(routeOf(two, 'a').strategy, 'weighted')
  t.strictSame(routeOf(two, 'a').targets.map(({ weight }) => weight), [1000, 1000, 1])
  t.equal(routeOf(two, 'b').targets.length, 1, 'a model is not its own fallback')
})

t.test('a deployment with weight 0 becomes the last target with the smallest weight', t => {
  const weightsOf = (weights: readonly object[]) => {
    const config = load(t, importLitellm(stringify({
      model_list: weights.map((weight, index) => ({
        model_name: 'a', litellm_params: { model: 'openai/x', api_base: `http://h${index}:1`, ...weight },
      })),
    })))
    return routeOf(config, 'a').targets.map(({ upstream, weight }) => [upstream.url?.hostname, weight])
  }
  t.strictSame(weightsOf([{ weight: 0 }, { weight: 3 }, { weight: 1 }]), [
    ['h1', 3000], ['h2', 1000], ['h0', 1],
  ])
  t.strictSame(weightsOf([{ weight: 1.7e308 }, { weight: 0 }]), [['h0', 1000], ['h1', 1]], 'the largest weight is reduced to 1,000')
  t.strictSame(weightsOf([{ rpm: 60 }, { rpm: 0 }]), [['h0', 1000], ['h1', 1]])
  t.strictSame(weightsOf([{ weight: 0 }, { weight: 0 }]), [['h0', 1], ['h1', 1]], 'if all weights are 0 the targets get equal weights')
  t.end()
})

t.test('text such as ${HOME} is not imported as a reference to the environment', t => {
  const params = { model: 'openai/m', api_key: 'os.environ/K', organization: 'org ${HOME}' }
  const imported = importLitellm(stringify({ model_list: [{ model_name: 'm', litellm_params: params }] }))
  t.strictSame(imported.variables, ['K'])
  t.match(load(t, imported).upstreams.get('openai')?.headers, { 'openai-organization': 'org ${HOME}' })
  t.end()
})

t.test('each price field of LiteLLM is imported as the matching price', t => {
  const costs = {
    input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, cache_read_input_token_cost: 3e-6,
    cache_creation_input_token_cost: 4e-6, output_cost_per_reasoning_token: 5e-6,
    input_cost_per_audio_token: 6e-6, output_cost_per_audio_token: 7e-6, input_cost_per_second: 8,
    input_cost_per_character: 9, output_cost_per_image: 10,
  }
  const config = load(t, importLitellm(stringify({
    model_list: [{ model_name: 'm', litellm_params: { model: 'openai/m' }, model_info: costs }],
  })))
  t.strictSame(config.models.get('m')?.price, {
    input: '1', output: '2', cachedInput: '3', reasoning: '5', inputAudio: '6', outputAudio: '7',
    perSecond: '8', perCharacter: '9', perImage: '10', cacheWrite5m: '4', cacheWrite1h: '4',
  })
  t.end()
})

t.test('a model with providers of several protocols has one route with all providers', async t => {
  const imported = importLitellm(`
model_list:
  - { model_name: best, litellm_params: { model: openai/gpt-5.1 } }
  - { model_name: best, litellm_params: { model: anthropic/claude-opus-4-5 } }
  - { model_name: best, litellm_params: { model: gemini/gemini-2.5-pro } }
  - { model_name: own, litellm_params: { model: hosted_vllm/qwen3, api_base: "http://127.0.0.1:8000/v1" } }
router_settings: { fallbacks: [{ own: [best] }] }
`)
  const { routes } = load(t, imported)
  t.match(routes, [
    { path: null, targets: [
      { upstream: { name: 'openai', speaks: ['chat', 'responses'] } },
      { upstream: { name: 'anthropic', speaks: ['messages'] } },
      { upstream: { name: 'gemini', speaks: ['generate'] } },
    ] },
    { path: null, targets: [{ upstream: { speaks: ['chat'] } }, { model: 'gpt-5.1' }, { model: 'claude-opus-4-5' }, { model: 'gemini-2.5-pro' }] },
  ])
  t.equal(routes.length, 2)
})

t.test('routes with exact names come before routes with patterns', async t => {
  const { routes } = load(t, importLitellm(`
model_list:
  - { model_name: "*", litellm_params: { model: "openai/*" } }
  - { model_name: mine, litellm_params: { model: openai/gpt-4.1 } }
`))
  t.strictSame(routes.map(({ models }) => models), [['mine'], ['*']])
})

t.test('routes with longer patterns come before routes with shorter patterns', async t => {
  const { routes } = load(t, importLitellm(`
model_list:
  - { model_name: "*", litellm_params: { model: "openai/*" } }
  - { model_name: "claude-*", litellm_params: { model: "anthropic/claude-*" } }
  - { model_name: "claude-opus-*", litellm_params: { model: "anthropic/claude-opus-*" } }
  - { model_name: "gemini-*", litellm_params: { model: "gemini/gemini-*" } }
`))
  t.strictSame(routes.map(({ models }) => models?.[0]), ['claude-opus-*', 'claude-*', 'gemini-*', '*'])
})

t.test('prices per second, character and image are exact decimals', async t => {
  const imported = importLitellm(`
model_list:
  - model_name: m
    litellm_params: { model: openai/m, api_key: os.environ/K }
    model_info:
      input_cost_per_token: 3.333333333e-7
      input_cost_per_second: 0.00000556
      input_cost_per_character: 2.5e-7
      output_cost_per_image: 1e-9
`)
  t.strictSame(load(t, imported).models.get('m')?.price, {
    input: '0.3333333333', perSecond: '0.00000556', perCharacter: '0.00000025', perImage: '0.000000001',
  })
})

t.test('prices are exact decimals per million tokens', async t => {
  const { models } = load(t, importLitellm(`
model_list:
  - model_name: m
    litellm_params: { model: openai/m, input_cost_per_token: 1.5e-07, output_cost_per_token: 0.0000006 }
    model_info: { cache_read_input_token_cost: 0.000000075 }
`))
  t.strictSame(models.get('m')?.price, { input: '0.15', cachedInput: '0.075', output: '0.6' })
})

t.test('a literal master key is imported as its digest', async t => {
  const imported = importLitellm(`
model_list: [{ model_name: m, litellm_params: { model: openai/m } }]
general_settings: { master_key: sk-literal-secret }
`)
  t.notMatch(imported.yaml, 'sk-literal')
  t.match(load(t, imported).keys, [{ name: 'master' }])
})

t.test('without a master key the imported configuration requires keys, and a note says so', async t => {
  const imported = importLitellm('model_list: [{ model_name: m, litellm_params: { model: openai/m } }]')
  t.equal(load(t, imported).auth, 'keys')
  t.strictSame(settings(imported), ['general_settings.master_key'])
})

t.test('a note has the place of each setting that is not imported', async t => {
  const imported = importLitellm(`model_list:
  - model_name: m
    litellm_params: { model: openai/m, mystery: 1, timeout: soon }
general_settings:
  master_key: os.environ/K
  something_new: { a: 1 }
unheard_of: true
`)
  t.strictSame(imported.notes.map(({ place, setting }) => `${place} ${setting}`), [
    '3:49 model_list[0].litellm_params.mystery',
    '3:61 model_list[0].litellm_params.timeout',
    '6:18 general_settings.something_new',
    '7:13 unheard_of',
  ])
})

t.test('the error of a failed import has the reason and the place', async t => {
  for (const [text, message] of [
    ['', 'not a mapping'],
    ['- a', 'not a mapping'],
    ['a: [', /^\d+:\d+: /],
    ['model_list: []', 'no model_list'],
    [
      'model_list: [{ model_name: m, litellm_params: { model: sagemaker/x } }]',
      /none of its models[^]*\n1:14: sagemaker/,
    ],
    ['a: &a [x]\nb: &b [*a, *a]\nc: *nowhere', /nowhere/],
  ] as const) {
    t.throws(() => importLitellm(text), { name: 'ImportError', message })
    t.throws(() => importLitellm(text), ImportError)
  }
})

t.test('an error about too deep nesting has the place of the value', t => {
  const stairs = Array.from({ length: 4_000 }, (_, level) => `${' '.repeat(level)}a:\n`).join('')
  for (const [text, message] of [
    [`a: ${'['.repeat(4_000)}${']'.repeat(4_000)}`, /^1:\d+: values are nested too deeply$/],
    [`a: ${'{a: '.repeat(4_000)}`, /^1:\d+: values are nested too deeply$/],
    [stairs, /^\d+:\d+: values are nested too deeply$/],
    [`${stairs}model_list: []\n`, /^values are nested too deeply$/],
  ] as const) {
    t.throws(() => importLitellm(text), { name: 'ImportError', message })
  }
  t.end()
})

t.test('property: each imported configuration has no errors', async t => {
  const word = fc.stringMatching(/^[a-z][a-z0-9.-]{0,8}$/)
  const model = fc.tuple(fc.constantFrom('openai/', 'anthropic/', 'gemini/', 'groq/', 'azure/', ''), word)
    .map(parts => parts.join(''))
  const entry = fc.record({
    model_name: fc.oneof(word, word.map(name => `${name}*`), fc.constantFrom('a', 'b', 'c')),
    litellm_params: fc.record({
      model,
      api_base: fc.oneof(fc.webUrl({ withQueryParameters: false }), fc.constant('os.environ/THE_BASE')),
      api_key: fc.oneof(fc.string(), fc.constant('os.environ/THE_KEY'), fc.constant('${X} and #: \' "')),
      weight: fc.oneof(fc.integer(), fc.double(), fc.string()),
      rpm: fc.nat(),
      order: fc.nat(3),
      timeout: fc.oneof(fc.nat(600), fc.double({ min: 0.1, max: 600, noNaN: true })),
      input_cost_per_token: fc.double({ min: 0, max: 0.001, noNaN: true }),
    }, { requiredKeys: ['model', 'api_base'] }),
  })
  const file = fc.record({
    model_list: fc.array(entry, { minLength: 1, maxLength: 6 }),
    router_settings: fc.record({
      routing_strategy: fc.constantFrom(
        'simple-shuffle', 'least-busy', 'latency-based-routing', 'cost-based-routing',
      ),
      num_retries: fc.nat(200),
      fallbacks: fc.array(
        fc.dictionary(fc.constantFrom('a', 'b', '*'), fc.array(fc.constantFrom('a', 'b', 'c', 'z'))),
      ),
      context_window_fallbacks: fc.constant([{ a: ['b'] }]),
    }, { requiredKeys: [] }),
  }, { requiredKeys: ['model_list'] })
  fc.assert(fc.property(file, content => {
    load(t, importLitellm(stringify(content)))
  }), { numRuns: 100 })
})

t.test('models of an unknown provider are not imported, and a note has the reason', async t => {
  const entries: [model: string, more?: object][] = [
    ['huggingface/x', { api_key: 'os.environ/HF_KEY' }],
    ['xinference/llama', { api_base: 'http://x:1/v1' }],
    ['meta-llama/Llama-3', {
      custom_llm_provider: 'openai', api_base: 'http://y:1/v1', api_key: 'os.environ/Y_KEY',
    }],
    ['dashscope/qwen-max'],
    ['cohere_chat/command-a'],
    ['text-completion-openai/gpt-3.5-turbo-instruct'],
  ]
  const imported = importLitellm(stringify({
    model_list: entries.map(([model, more], i) => (
      { model_name: `m${i}`, litellm_params: { model, ...more } }
    )),
  }))
  const config = load(t, imported)
  const targets = ['m2', 'm3', 'm4', 'm5'].map(name => routeOf(config, name).targets[0])
  t.strictSame(targets.map(target => [target?.upstream.url?.href, target?.model]), [
    ['http://y:1/', 'meta-llama/Llama-3'],
    ['https://dashscope-intl.aliyuncs.com/compatible-mode', 'qwen-max'],
    ['https://api.cohere.ai/compatibility', 'command-a'],
    ['https://api.openai.com/', 'gpt-3.5-turbo-instruct'],
  ])
  t.equal(config.routes.length, targets.length)
  t.strictSame(imported.variables, ['COHERE_API_KEY', 'DASHSCOPE_API_KEY', 'OPENAI_API_KEY', 'Y_KEY'])
  const told = imported.notes.map(({ text }) => text)
  t.match(told.filter(text => /^(huggingface|xinference): /.test(text)), [
    'huggingface: its API is none of the three protocols', 'xinference: the provider is not known here',
  ])
})

t.test('an upstream whose API is not under /v1 gets the path of that API as v1', async t => {
  const entries = [
    ['perplexity/sonar'], ['zai/glm-4.6'], ['deepinfra/llama', 'https://api.deepinfra.com/v1/openai'],
    ['github/gpt-4o', 'https://models.example/'], ['openai/llama', 'http://10.0.0.7:8000/llm/v3/'],
    ['openai/llama', 'http://10.0.0.7:8000/llm/v1/'], ['perplexity/sonar', 'http://10.0.0.7:9000'],
    ['perplexity/sonar', 'https://api.perplexity.ai/v1'], ['github/gpt-4o', 'https://models.example/v1'],
  ]
  const imported = importLitellm(stringify({
    model_list: entries.map(([model, api_base], i) => (
      { model_name: `m${i}`, litellm_params: { model, api_base } }
    )),
  }))
  const config = load(t, imported)
  const upstreams = entries.map((_, i) => routeOf(config, `m${i}`).targets[0]?.upstream)
  t.strictSame(upstreams.map(upstream => [upstream?.url?.href, upstream?.v1]), [
    ['https://api.perplexity.ai/', ''],
    ['https://api.z.ai/', '/api/paas/v4'],
    ['https://api.deepinfra.com/', '/v1/openai'],
    ['https://models.example/', ''],
    ['http://10.0.0.7:8000/', '/llm/v3'],
    ['http://10.0.0.7:8000/llm', null],
    ['http://10.0.0.7:9000/', null],
    ['https://api.perplexity.ai/', null],
    ['https://models.example/', null],
  ])
})

t.test('a literal key for another host is replaced by a variable with the name of the host', async t => {
  const at = (api_base: string | undefined, api_key: string) => ({ model: 'openai/m', api_base, api_key })
  const imported = importLitellm(stringify({
    model_list: [
      { model_name: 'a', litellm_params: at(undefined, 'os.environ/OPENAI_API_KEY') },
      { model_name: 'b', litellm_params: at('http://10.0.0.7:8000/v1', 'none') },
      { model_name: 'c', litellm_params: at('https://llm.example.com', 'sk-secret') },
      { model_name: 'd', litellm_params: at('https://api.openai.com/v1', 'sk-secret') },
      { model_name: 'e', litellm_params: { ...at('https://x.openai.azure.com', 'a'), model: 'azure/m' } },
    ],
  }))
  const config = load(t, imported)
  const keys = ['a', 'b', 'c', 'd', 'e'].map(name => valueOf(routeOf(config, name).targets[0]?.upstream.auth))
  t.strictSame(keys.map(key => key?.replace(/^Bearer |-0123456789abcdef$/g, '')), [
    'OPENAI_API_KEY', 'KEY_FOR_10_0_0_7', 'KEY_FOR_LLM_EXAMPLE_COM', 'OPENAI_API_KEY', 'AZURE_API_KEY',
  ])
})

t.test('aliases and merge keys are expanded', async t => {
  const imported = importLitellm(`
x-defaults: &ours { api_base: "https://llm.example.com/v1", api_key: os.environ/OUR_KEY, timeout: 3, seed: 7 }
x-list: &list
  - model_name: fast
    litellm_params: { <<: *ours, model: openai/gpt-4.1-mini }
  - &slow
    model_name: slow
    litellm_params: &params { <<: [{ timeout: 60 }, *ours], model: openai/gpt-4.1 }
  - { model_name: other, litellm_params: *params }
  - { <<: *slow, model_name: fourth }
model_list: *list
`)
  const config = load(t, imported)
  t.strictSame([...config.upstreams.values()].map(({ url, auth }) => [url?.href, valueOf(auth)]), [
    ['https://llm.example.com/', 'Bearer OUR_KEY-0123456789abcdef'],
  ])
  t.strictSame(config.routes.map(({ models, timeouts }) => [models, timeouts.total]), [
    [['fast'], 3_000], [['slow'], 60_000], [['other'], 60_000], [['fourth'], 60_000],
  ])
  const seed = imported.notes.find(({ setting }) => setting.startsWith('model_list[0].litellm_params.seed'))
  t.match(seed, { place: '2:108', setting: 'model_list[0].litellm_params.seed and 3 more' })
})

t.test('credentials in URLs and headers are not copied', async t => {
  const imported = importLitellm(`model_list:
  - model_name: a
    litellm_params:
      model: openai/a
      api_base: https://user:pass-word@llm.example.com:8443/v1
      extra_headers: { X-Gateway-Token: secret-value, X-Other: os.environ/OTHER, X-Team: blue }
`)
  t.notMatch(imported.yaml, /pass-word|secret-value/)
  const [upstream] = load(t, imported).upstreams.values()
  t.equal(upstream?.url?.href, 'https://llm.example.com:8443/')
  t.match(upstream?.headers, {
    'x-gateway-token': 'X_GATEWAY_TOKEN-0123456789abcdef',
    'x-other': 'OTHER-0123456789abcdef',
    'x-team': 'blue',
  })
  const notes = imported.notes.map(({ place, text }) => `${place}: ${text}`)
  t.strictSame(notes.filter(note => note.includes('not copied')), [
    '5:17: the credentials in the address are not copied: put them under auth',
    '6:41: the value itself is not copied: put it into the environment as X_GATEWAY_TOKEN',
  ])
})

t.test('the query of a URL is not copied, and a note says so', async t => {
  for (const api_base of [
    'https://a.openai.azure.com/?api-key=secret', 'https://b.example.com/v1?key=secret#secret',
    'https://c.example.com?key=secret', 'https://d.example.com/paas/v4/?key=secret',
  ]) {
    const model = api_base.includes('azure') ? 'azure/x' : 'openai/x'
    const imported = importLitellm(stringify({
      model_list: [{ model_name: 'm', litellm_params: { model, api_base } }],
    }))
    t.notMatch(JSON.stringify(imported), 'secret', api_base)
    t.match(imported.notes.map(({ text }) => text).join(), 'what follows the path is not copied')
    t.equal(load(t, imported).upstreams.size, 1)
  }
})

t.test('names in notes contain no control characters', async t => {
  const text = `
model_list:
  - { model_name: a, litellm_params: { model: "zz\\e[2J\\n/x" } }
  - { model_name: b, litellm_params: { model: openai/x, "se\\ecd": 1 } }`
  const notes = importLitellm(text).notes.map(({ setting, text: why }) => `${setting}: ${why}`).join('')
  t.match(notes, 'zz\ufffd[2J\ufffd: the provider')
  t.match(notes, 'se\ufffdcd: there is')
  const first = text.split('\n').slice(0, 3).join('\n')
  t.throws(() => importLitellm(first), { message: /zz\ufffd\[2J\ufffd: the/ })
})

t.test('an unknown strategy is imported as `ordered`, even with a name such as constructor', async t => {
  for (const routing_strategy of ['bogus', 'constructor', 'toString']) {
    const imported = importLitellm(stringify({
      model_list: ['openai/x', 'groq/x'].map(model => ({ model_name: 'm', litellm_params: { model } })),
      router_settings: { routing_strategy },
    }))
    t.match(imported.notes.map(({ text }) => text).join(), `there is no ${routing_strategy}: the targets`)
    t.equal(routeOf(load(t, imported), 'm').strategy, 'ordered')
  }
})

t.test('an entry with an invalid api_base is not imported, and a note says so', async t => {
  const bases = ['localhost:11434', 'localhost:11434/v1', 'h', '/v1', 'ws://h', 'https://user:pass/word@h/v1']
  const imported = importLitellm(stringify({
    model_list: [
      ...bases.map(api_base => ({ model_name: 'm', litellm_params: { model: 'openai/x', api_base } })),
      { model_name: 'm', litellm_params: { model: 'openai/x' } },
    ],
  }))
  t.notMatch(JSON.stringify(imported), 'pass/word')
  const told = imported.notes.filter(({ text }) => text.startsWith('its api_base is no http or https URL'))
  t.strictSame(told.map(({ setting }) => setting), bases.map((_, index) => `model_list[${index}]`))
  t.equal(load(t, imported).upstreams.size, 1)
})

t.test('if several anchors have the same name, a note has the place of the anchor that applies', async t => {
  const entry = (name: string) => `  - { model_name: ${name}, litellm_params: { <<: *ours, model: openai/m } }\n`
  const { notes } = importLitellm(`a: &ours { api_key: sk-a }
b: { model_list: [*ours] }
c: &ours { api_key: sk-c }
model_list:
${Array.from({ length: 2000 }, (_, n) => entry(`m${n}`)).join('')}`)
  t.match(notes.find(({ text }) => text.startsWith('the key itself is not copied')), { place: '3:21' })
})

t.test('hundreds of models can use the same anchor', async t => {
  const entries = Array.from({ length: 300 }, (_, n) =>
    `  - { model_name: m${n}, litellm_params: { <<: *ours, model: openai/m${n} }, model_info: *info }\n`)
  const { routes } = load(t, importLitellm(
    'x: &ours { api_key: os.environ/K }\ny: &info { mode: chat }\nmodel_list:\n' + entries.join(''),
  ))
  t.equal(routes.length, 300)
})

t.test('an entry has the address and the key of the credential that the entry names', async t => {
  const imported = importLitellm(`
model_list:
  - model_name: fast
    litellm_params: { model: azure/fast, litellm_credential_name: ours }
  - model_name: slow
    litellm_params: { model: azure/slow, litellm_credential_name: ours, api_key: os.environ/OWN_KEY }
  - model_name: lost
    litellm_params: { model: openai/gpt-4.1, litellm_credential_name: of-the-database }
credential_list:
  - credential_name: ours
    credential_values:
      api_base: https://ours.openai.azure.com
      api_key: os.environ/OUR_KEY
      api_version: "2025-01-01"
    credential_info: { description: shared }
`)
  const config = load(t, imported)
  t.strictSame([...config.upstreams.values()].map(({ url, auth }) => [url?.href, valueOf(auth)]), [
    ['https://ours.openai.azure.com/', 'OUR_KEY-0123456789abcdef'],
    ['https://ours.openai.azure.com/', 'OWN_KEY-0123456789abcdef'],
  ])
  t.strictSame(config.routes.map(({ models }) => models), [['fast'], ['slow']], 'an entry with an unknown credential is not imported')
  t.match(imported.notes, [
    { setting: 'general_settings.master_key' },
    { place: '7:5', setting: 'model_list[2]', text: 'its credential of-the-database is not in the file' },
  ])
})

function valueOf(auth: Auth | null | undefined): string | undefined {
  return auth?.kind === 'static' ? auth.value : undefined
}

t.test('virtual keys are imported with digest, limits, budget, models and expiry', async t => {
  const digest = createHash('sha256').update('sk-a-virtual-key-of-litellm').digest('hex')
  const { list, notes } = readVirtualKeys(`token,key_name,key_alias,spend,expires,models,user_id,team_id,max_parallel_requests,tpm_limit,rpm_limit,max_budget,budget_duration,blocked
${digest},sk-...tellm,"team, a",1.5,2027-01-01 00:00:00,"{gpt-4.1,""my model""}",ada,,5,1000,60,20,30d,
${'b'.repeat(64)},sk-...1234,master,0,,{all-proxy-models},,t1,,,,5,7d,f
${'c'.repeat(64)},sk-...5678,gone,0,,{},,,,,,,,t
${'d'.repeat(64)},sk-...5678,empty,0,,{},,,,,,0,,
${'e'.repeat(64)},sk-...5678,,0,,{},,litellm-dashboard,,,,,,
not-a-digest,sk-...9999,odd,0,,{},,,,,,,,
`)
  t.strictSame(list, [
    {
      name: 'team, a', sha256: digest, owner: 'ada', expires: '2027-01-01T00:00:00.000Z', models: ['gpt-4.1', 'my model'],
      limits: { requests_per_minute: 60, tokens_per_minute: 1000, concurrent: 5, budget: { usd: 20, per: 'month' } },
    },
    { name: 'master-2', sha256: 'b'.repeat(64), limits: { budget: { usd: 5, per: 'month' } } },
  ])
  t.strictSame(notes.map(({ place, setting }) => [place, setting]), [
    ['3:1', 'budget_duration'], ['3:1', 'team_id'], ['4:1', 'blocked'], ['5:1', 'blocked'], ['7:1', 'token'],
  ])
  const imported = importLitellm('model_list: [{ model_name: gpt-4.1, litellm_params: { model: openai/gpt-4.1 } }]', list)
  t.match(load(t, imported).keys, [{ name: 'team, a', digest: Buffer.from(digest, 'hex') }, { name: 'master-2' }])
})

t.test('an export without virtual keys is refused', async t => {
  for (const csv of ['a,b\n1,2\n', 'token\n"unclosed', '']) t.throws(() => readVirtualKeys(csv), ImportError)
})
