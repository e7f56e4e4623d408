import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startTranslating } from '../../support/translating-gateway.ts'

const CLIENTS: Readonly<Record<string, { path: string; prompt: string; content: string }>> = {
  chat: { path: '/v1/chat/completions', prompt: 'messages', content: 'content' },
  messages: { path: '/v1/messages', prompt: 'messages', content: 'content' },
  responses: { path: '/v1/responses', prompt: 'input', content: 'content' },
  generate: { path: '/v1beta/models/m:generateContent', prompt: 'contents', content: 'parts' },
}

for (const [client, { path, prompt, content }] of Object.entries(CLIENTS)) {
  for (const to of Object.keys(CLIENTS).filter(name => name !== client)) {
    t.test(`${client} to ${to}: a list of another type is refused by its name, and the upstream hears nothing`, async t => {
      const { gateway, seen } = await startTranslating(t, { up: { speaks: to, responses: [{ body: {} }] } })
      const good = [{ role: 'user', [content]: client === 'generate' ? [{ text: 'hi' }] : 'hi' }]
      const cases: [unknown, string][] = [
        [{ [prompt]: 5 }, prompt], [{ [prompt]: true }, prompt],
        [{ [prompt]: [5] }, `${prompt}[0]`], [{ [prompt]: [...good, null] }, `${prompt}[1]`], [{ [prompt]: [[]] }, `${prompt}[0]`],
        [{ [prompt]: [{ role: 'user', [content]: 7 }] }, content],
        [{ [prompt]: [{ role: 'user', [content]: [7] }] }, `${content}[0]`],
        [{ [prompt]: good, tools: 'x' }, 'tools'], [{ [prompt]: good, tools: [7] }, 'tools[0]'],
      ]
      // The generate protocol takes a single object for a list of one.
      if (client !== 'generate') {
        cases.push([{ [prompt]: {} }, prompt], [{ [prompt]: [{ role: 'user', [content]: {} }] }, content])
        cases.push([{ [prompt]: good, tools: { a: 1 } }, 'tools'])
      }
      if (client !== 'responses') cases.push([{ [prompt]: null }, prompt], [{ [prompt]: 'hi' }, prompt])
      for (const [members, named] of cases) {
        const body = JSON.stringify({ model: 'm', max_tokens: 5, ...members as object })
        const response = await fetch(gateway.url + path, {
          method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
        })
        const text = await response.text()
        t.equal(response.status, 400, `${body}: ${text}`)
        t.ok(text.includes(`${named}: it must be`), `${body}: ${text}`)
      }
      t.strictSame(seen, { up: [] })
    })
  }
}
