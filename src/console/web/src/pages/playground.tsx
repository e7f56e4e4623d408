import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useApiQuery } from '../api-hooks.ts'
import { Page, Section } from '../components/page.tsx'
import { useUser } from '../session.ts'
import type { User } from '../session.ts'
import { baseUrlFor } from './playground/base-url.ts'
import { CodeSnippets } from './playground/code-snippets.tsx'
import { promptOf, PromptForm } from './playground/form.tsx'
import type { Draft } from './playground/form.tsx'
import { ResponseView } from './playground/response-view.tsx'
import classes from './playground/playground.module.css'
import { useRun } from './playground/use-run.ts'

const BLANK: Omit<Draft, 'model'> = {
  protocol: 'chat', system: '', text: 'Say hello in one sentence.', maxTokens: '', temperature: '',
  stream: true,
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
  const { progress, isRunning, send, stop } = useRun()
  const first = models?.models.find(({ protocols }) => protocols.length > 0)
  const draft: Draft = { ...fields, model: fields.model ?? first?.name ?? '' }
  const { prompt, errors } = promptOf(draft)
  const change = (changes: Partial<Draft>) => {
    const known = models?.models.find(({ name }) => name === changes.model)
    // If the model does not support the protocol, switch to one that it supports.
    const [supported] = known?.protocols ?? []
    const mustSwitch = supported !== undefined && !known?.protocols.includes(fields.protocol)
    setFields(before => ({ ...before, ...changes, ...mustSwitch && { protocol: supported } }))
  }
  const submit = () => {
    setSubmitted(true)
    if (Object.keys(errors).length === 0) send(prompt)
  }
  return (
    <Page title="Playground" about={ABOUT[role]}>
      <div className={classes.columns}>
        <Section title="Request">
          <PromptForm draft={draft} change={change} errors={isSubmitted ? errors : {}}
            models={models?.models ?? []} isRunning={isRunning} submit={submit} stop={stop}
            disabledReason={role === 'viewer' ? VIEWER_REASON : null} />
        </Section>
        <Section title="Response"><ResponseView progress={progress} /></Section>
      </div>
      <Section title="Code for this request">
        <CodeSnippets prompt={prompt} baseUrl={baseUrlFor(models?.base_url ?? null, window.location)} />
      </Section>
    </Page>
  )
}
