import { useState } from 'react'
import { useSearchParams } from 'wouter'
import type { Models } from '../../../api/routes.ts'
import { useApiQuery } from '../api-hooks.ts'
import { Page, Section } from '../components/page/page.tsx'
import { useUser, type User } from '../session.ts'
import { baseUrlFor } from './playground/base-url.ts'
import { CodeSnippets } from './playground/code-snippets.tsx'
import { promptOf, PromptForm, type Draft } from './playground/form.tsx'
import type { Prompt } from './playground/prompt.ts'
import { ResponseView } from './playground/response-view.tsx'
import classes from './playground/playground.module.css'
import { useRun } from './playground/use-run.ts'

const BLANK: Omit<Draft, 'model'> = {
  protocol: 'chat', system: '', text: 'Say hello in one sentence.', images: [], tools: '', maxTokens: '', temperature: '', topP: '', stop: '',
  stream: true, other: '',
}

const ABOUT: Readonly<Record<User['role'], string>> = {
  admin: 'Sends a request as your console user. It is metered and logged. Key limits do not apply.',
  viewer: 'Shows a request in each protocol and as code.',
  key: 'Sends a request with your key. It is metered and logged. The limits and budget of the key apply.',
}

const VIEWER_REASON = 'Viewers cannot send requests. Log in as an administrator or with an API key.'

/** Sends a request to a model. */
export default function PlaygroundPage() {
  const { role } = useUser()
  const [search] = useSearchParams()
  const models = useApiQuery('GET /models', {}).data
  const [fields, setFields] = useState({ ...BLANK, model: search.get('model') })
  const [isSubmitted, setSubmitted] = useState(false)
  const first = useRun()
  const second = useRun()
  const usable = models?.models.find(({ protocols }) => protocols.length > 0)
  const draft: Draft = { ...fields, model: fields.model ?? usable?.name ?? '' }
  const { prompt, errors } = promptOf(draft)
  const other = otherPrompt(prompt, draft.other, models?.models ?? [])
  const change = (changes: Partial<Draft>) => {
    const known = models?.models.find(({ name }) => name === changes.model)
    // If the model does not support the protocol, choose a protocol that the model supports.
    const [supported] = known?.protocols ?? []
    const mustSwitch = supported !== undefined && !known?.protocols.includes(fields.protocol)
    setFields(before => ({ ...before, ...changes, ...mustSwitch && { protocol: supported } }))
  }
  const submit = () => {
    setSubmitted(true)
    if (Object.keys(errors).length > 0) return
    first.send(prompt)
    if (other) second.send(other)
  }
  return (
    <Page title="Playground" about={ABOUT[role]}>
      <div className={classes.columns}>
        <Section title="Request">
          <PromptForm draft={draft} change={change} errors={isSubmitted ? errors : {}}
            models={models?.models ?? []} isRunning={first.isRunning || second.isRunning} submit={submit}
            stop={() => {
              first.stop()
              second.stop()
            }}
            disabledReason={role === 'viewer' ? VIEWER_REASON : null} />
        </Section>
        {other
          ? <div className={classes.compared}>
              <Section title={draft.model}><ResponseView progress={first.progress} /></Section>
              <Section title={other.model}><ResponseView progress={second.progress} /></Section>
            </div>
          : <Section title="Response"><ResponseView progress={first.progress} /></Section>}
      </div>
      <Section title="Code for this request">
        <CodeSnippets prompt={prompt} baseUrl={baseUrlFor(models?.base_url ?? null, window.location)} />
      </Section>
    </Page>
  )
}

/** The same prompt for another model, in a protocol that this model supports; null = there is no other model. */
function otherPrompt(prompt: Prompt, name: string, models: Models['models']): Prompt | null {
  const model = name.trim()
  if (model === '') return null
  const protocols = models.find(each => each.name === model)?.protocols ?? []
  const protocol = protocols.includes(prompt.protocol) ? prompt.protocol : protocols[0] ?? prompt.protocol
  return { ...prompt, model, protocol }
}
