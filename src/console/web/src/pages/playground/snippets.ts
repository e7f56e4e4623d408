import { Code, javascript, python, pythonArguments, shell } from './literals.ts'
import { callOf, MESSAGES_MAX_TOKENS } from './prompt.ts'
import type { Prompt, Protocol } from './prompt.ts'

/** Placeholder for the user's API key. */
export const PLACEHOLDER = 'YOUR_API_KEY'

export interface Snippet {
  readonly language: 'curl' | 'JavaScript' | 'Python'
  /** Command to install the client library; null if none is needed. */
  readonly install: string | null
  readonly code: string
}

/**
 * The request as code for curl and the official client libraries.
 *
 * @param baseUrl - of the gateway, without a trailing slash
 */
export function snippets(prompt: Prompt, baseUrl: string): Snippet[] {
  const { npm, pip } = PACKAGES[prompt.protocol]
  const [js, py] = [JAVASCRIPT[prompt.protocol], PYTHON[prompt.protocol]]
  return [
    { language: 'curl', install: null, code: curl(prompt, baseUrl) },
    { language: 'JavaScript', install: `npm install ${npm}`, code: js(prompt, baseUrl) },
    { language: 'Python', install: `pip install ${pip}`, code: py(prompt, baseUrl) },
  ]
}

const PACKAGES: Readonly<Record<Protocol, { npm: string; pip: string }>> = {
  chat: { npm: 'openai', pip: 'openai' },
  responses: { npm: 'openai', pip: 'openai' },
  messages: { npm: '@anthropic-ai/sdk', pip: 'anthropic' },
  generate: { npm: '@google/genai', pip: 'google-genai' },
}

const CREDENTIALS: Readonly<Record<Protocol, string>> = {
  chat: `Authorization: Bearer ${PLACEHOLDER}`,
  responses: `Authorization: Bearer ${PLACEHOLDER}`,
  messages: `x-api-key: ${PLACEHOLDER}`,
  generate: `x-goog-api-key: ${PLACEHOLDER}`,
}

function curl(prompt: Prompt, baseUrl: string): string {
  const { path, headers, body } = callOf(prompt)
  const lines = [
    `curl${prompt.stream ? ' -N' : ''} ${shell(`${baseUrl}${path}`)}`,
    `-H ${shell(CREDENTIALS[prompt.protocol])}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    `-H 'Content-Type: application/json'`,
    `-d ${shell(JSON.stringify(body, null, 2))}`,
  ]
  return lines.join(' \\\n  ')
}

type SnippetWriter = (prompt: Prompt, baseUrl: string) => string

const JAVASCRIPT: Readonly<Record<Protocol, SnippetWriter>> = {
  chat: (prompt, baseUrl) => openai(baseUrl) + (prompt.stream
    ? `const stream = await client.chat.completions.create(${javascript(callOf(prompt).body)})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
`
    : `const response = await client.chat.completions.create(${javascript(callOf(prompt).body)})
console.log(response.choices[0].message.content, response.usage)
`),
  responses: (prompt, baseUrl) => openai(baseUrl) + (prompt.stream
    ? `const stream = await client.responses.create(${javascript(callOf(prompt).body)})
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}
`
    : `const response = await client.responses.create(${javascript(callOf(prompt).body)})
console.log(response.output_text, response.usage)
`),
  messages: (prompt, baseUrl) => {
    const { stream: _, ...body } = callOf(prompt).body
    return `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic(${javascript({ baseURL: baseUrl, apiKey: PLACEHOLDER })})
${prompt.stream
  ? `const stream = client.messages.stream(${javascript(body)})
stream.on('text', text => process.stdout.write(text))
console.log((await stream.finalMessage()).usage)
`
  : `const message = await client.messages.create(${javascript(body)})
console.log(message.content, message.usage)
`}`
  },
  generate: (prompt, baseUrl) => `import { GoogleGenAI } from '@google/genai'

const client = new GoogleGenAI(${javascript({ apiKey: PLACEHOLDER, httpOptions: { baseUrl } })})
${prompt.stream
  ? `const stream = await client.models.generateContentStream(${javascript(generation(prompt))})
for await (const chunk of stream) process.stdout.write(chunk.text ?? '')
`
  : `const response = await client.models.generateContent(${javascript(generation(prompt))})
console.log(response.text, response.usageMetadata)
`}`,
}

function openai(baseUrl: string): string {
  return `import OpenAI from 'openai'

const client = new OpenAI(${javascript({ baseURL: `${baseUrl}/v1`, apiKey: PLACEHOLDER })})
`
}

function generation({ model, system, text, maxTokens, temperature }: Prompt) {
  const config = {
    ...system !== '' && { systemInstruction: system },
    ...maxTokens !== null && { maxOutputTokens: maxTokens },
    ...temperature !== null && { temperature },
  }
  return { model, contents: text, ...Object.keys(config).length > 0 && { config } }
}

const PYTHON: Readonly<Record<Protocol, SnippetWriter>> = {
  chat: (prompt, baseUrl) => pythonOpenai(baseUrl) + (prompt.stream
    ? `stream = client.chat.completions.create(${pythonArguments(callOf(prompt).body)})
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
`
    : `response = client.chat.completions.create(${pythonArguments(callOf(prompt).body)})
print(response.choices[0].message.content, response.usage)
`),
  responses: (prompt, baseUrl) => pythonOpenai(baseUrl) + (prompt.stream
    ? `for event in client.responses.create(${pythonArguments(callOf(prompt).body)}):
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
`
    : `response = client.responses.create(${pythonArguments(callOf(prompt).body)})
print(response.output_text, response.usage)
`),
  messages: ({ model, system, text, maxTokens, temperature, stream }, baseUrl) => {
    const values = pythonArguments({
      model,
      max_tokens: maxTokens ?? MESSAGES_MAX_TOKENS,
      system: system === '' ? undefined : system,
      messages: [{ role: 'user', content: text }],
      temperature: temperature ?? undefined,
    })
    return `from anthropic import Anthropic

client = Anthropic(${pythonArguments({ base_url: baseUrl, api_key: PLACEHOLDER })})
${stream
  ? `with client.messages.stream(${values}) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
`
  : `message = client.messages.create(${values})
print(message.content, message.usage)
`}`
  },
  generate: (prompt, baseUrl) => {
    const { model, system, text, maxTokens, temperature, stream } = prompt
    const config = pythonArguments({
      system_instruction: system === '' ? undefined : system,
      max_output_tokens: maxTokens ?? undefined,
      temperature: temperature ?? undefined,
    }, 4)
    const values = pythonArguments({
      model,
      contents: text,
      config: config === '' ? undefined : new Code(`types.GenerateContentConfig(${config})`),
    })
    const client = pythonArguments({
      api_key: PLACEHOLDER,
      http_options: new Code(`types.HttpOptions(base_url=${python(baseUrl)})`),
    })
    return `from google import genai
from google.genai import types

client = genai.Client(${client})
${stream
  ? `for chunk in client.models.generate_content_stream(${values}):
    print(chunk.text or "", end="", flush=True)
`
  : `response = client.models.generate_content(${values})
print(response.text, response.usage_metadata)
`}`
  },
}

function pythonOpenai(baseUrl: string): string {
  return `from openai import OpenAI

client = OpenAI(${pythonArguments({ base_url: `${baseUrl}/v1`, api_key: PLACEHOLDER })})
`
}
