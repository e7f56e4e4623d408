import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useApiQuery } from '../ask.ts'
import { Page, Section } from '../components/page.tsx'
import { useUser } from '../session.ts'
import type { User } from '../session.ts'
import { baseUrlFor } from './playground/base-url.ts'
import { CodeSnippets } from './playground/code.tsx'
import { promptOf, PromptForm } from './playground/form.tsx'
import type { Draft } from './playground/form.tsx'
import { Outcome } from './playground/outcome.tsx'
import classes from './playground/playground.module.css'
import { useRun } from './playground/use-run.ts'

const BLANK: Omit<Draft, 'model'> = {
  protocol: 'chat', system: '', text: 'Say hello in one sentence.', maxTokens: '', temperature: '',
    stream: true,
}

const ABOUT: Readonly<Record<User['role'], string>> = {
  admin: 'Sends a request under your name, metered and logged as any other. Limits of keys do not apply.',
  viewer: 'What a request looks like, in each protocol and as code.',
  key: 'Sends a request with your key: its limits and its budget apply, and it is metered as any other.',
}

/** Tries a model out. */
export default function PlaygroundPage() {
  const { role } = useUser()
  const [search] = useSearchParams()
  const models = useApiQuery('GET /models', {}).data
  const [fields, setFields] = useState({ ...BLANK, model: search.get('model') })
  const [isTried, setTried] = useState(false)
  const { progress, isRunning, send, stop } = useRun()
  const first = models?.models.find(({ protocols }) => protocols.length > 0)
  const draft: Draft = { ...fields, model: fields.model ?? first?.name ?? '' }
  const { prompt, wrong } = promptOf(draft)
  const change = (news: Partial<Draft>) => {
    const known = models?.models.find(({ name }) => name === news.model)
    // A model that does not take the protocol is asked in one that it takes.
    const [other] = known?.protocols ?? []
    const moves = other !== undefined && !known?.protocols.includes(fields.protocol)
    setFields(before => ({ ...before, ...news, ...moves && { protocol: other } }))
  }
  const submit = () => {
    setTried(true)
    if (Object.keys(wrong).length === 0) send(prompt)
  }
  return (
    <Page title="Playground" about={ABOUT[role]}>
      <div className={classes.columns}>
        <Section title="Request">
          <PromptForm draft={draft} change={change} wrong={isTried ? wrong : {}} models={models?.models ?? []}
            isRunning={isRunning} submit={submit} stop={stop}
            disabledReason={role === 'viewer' ? 'Viewers look: only administrators and holders of a key can send.'
              : null} />
        </Section>
        <Section title="Answer"><Outcome progress={progress} /></Section>
      </div>
      <Section title="The same request in code">
        <CodeSnippets prompt={prompt} baseUrl={baseUrlFor(models?.base_url ?? null, window.location)} />
      </Section>
    </Page>
  )
}
