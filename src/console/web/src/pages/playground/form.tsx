import { Autocomplete, Button, NativeSelect, Switch, Textarea, TextInput } from '@mantine/core'
import { IconPlayerPlay, IconPlayerStop } from '@tabler/icons-react'
import type { FormEvent, KeyboardEvent } from 'react'
import type { Models } from '../../../../api/routes.ts'
import { MESSAGES_MAX_TOKENS, PROTOCOL_NAMES, PROTOCOLS } from './prompt.ts'
import type { Prompt, Protocol } from './prompt.ts'
import classes from './playground.module.css'

/** The form, as text in its fields. */
export interface Draft extends Omit<Prompt, 'maxTokens' | 'temperature'> {
  readonly maxTokens: string
  readonly temperature: string
}

/** @returns the prompt that the fields stand for, and what is wrong in them */
export function promptOf(draft: Draft): { prompt: Prompt; wrong: Partial<Record<keyof Draft, string>> } {
  const maxTokens = draft.maxTokens.trim() === '' ? null : Number(draft.maxTokens)
  const temperature = draft.temperature.trim() === '' ? null : Number(draft.temperature)
  return {
    prompt: { ...draft, model: draft.model.trim(), maxTokens, temperature },
    wrong: {
      ...draft.model.trim() === '' && { model: 'Name a model.' },
      ...draft.text.trim() === '' && { text: 'Write something.' },
      ...maxTokens !== null && !(Number.isSafeInteger(maxTokens) && maxTokens > 0)
        && { maxTokens: 'A whole number from 1 on.' },
      ...temperature !== null && !(temperature >= 0 && temperature <= 2)
        && { temperature: 'A number from 0 to 2.' },
    },
  }
}

export interface PromptFormProps {
  readonly draft: Draft
  readonly change: (news: Partial<Draft>) => void
  readonly wrong: Partial<Record<keyof Draft, string>>
  readonly models: Models['models']
  readonly isRunning: boolean
  readonly submit: () => void
  readonly stop: () => void
  /** Why nothing can be sent; null = it can. */
  readonly disabledReason: string | null
}

/** What is asked, and how. */
export function PromptForm({ draft, change, wrong, models, isRunning, submit, stop,
  disabledReason: barred }: PromptFormProps) {
  const known = models.find(({ name }) => name === draft.model.trim())
  const offered = known === undefined || known.protocols.length === 0 ? PROTOCOLS
    : PROTOCOLS.filter(name => known.protocols.includes(name))
  const protocols = offered.includes(draft.protocol) ? offered : [...offered, draft.protocol]
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    if (!isRunning && barred === null) submit()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) onSubmit(event)
  }
  return (
    // Control and Enter sends from any of the fields.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form onSubmit={onSubmit} onKeyDown={onKeyDown} className={classes.form} noValidate>
      <div className={classes.pair}>
        <Autocomplete label="Model" value={draft.model} error={wrong.model} maxDropdownHeight={280}
          spellCheck={false}
          data={models.filter(({ protocols }) => protocols.length > 0).map(({ name }) => name)}
          onChange={model => { change({ model }) }} />
        <NativeSelect label="Protocol" value={draft.protocol}
          data={protocols.map(value => ({ value, label: PROTOCOL_NAMES[value] }))}
          onChange={event => { change({ protocol: event.currentTarget.value as Protocol }) }} />
      </div>
      <Textarea label="System text" rows={2} resize="vertical" value={draft.system} placeholder="None"
        onChange={event => { change({ system: event.currentTarget.value }) }} />
      <Textarea label="Prompt" rows={6} resize="vertical" value={draft.text} error={wrong.text}
        onChange={event => { change({ text: event.currentTarget.value }) }} />
      <div className={classes.pair}>
        <TextInput label="Most tokens" inputMode="numeric" value={draft.maxTokens} error={wrong.maxTokens}
          autoComplete="off"
          placeholder={draft.protocol === 'messages' ? String(MESSAGES_MAX_TOKENS) : 'As the model likes'}
          onChange={event => { change({ maxTokens: event.currentTarget.value }) }} />
        <TextInput label="Temperature" inputMode="decimal" value={draft.temperature} error={wrong.temperature}
          autoComplete="off" placeholder="As the model likes"
          onChange={event => { change({ temperature: event.currentTarget.value }) }} />
      </div>
      <div className={classes.send}>
        <Switch label="Stream" checked={draft.stream}
          onChange={event => { change({ stream: event.currentTarget.checked }) }} />
        {/* Two elements: one that became the other within its own click would do the other's work. */}
        {isRunning
          ? <Button key="stop" variant="default" leftSection={<IconPlayerStop size={16} aria-hidden />}
            onClick={stop}>Stop</Button>
          : <Button key="send" type="submit" disabled={barred !== null}
            leftSection={<IconPlayerPlay size={16} aria-hidden />}>Send</Button>}
      </div>
      <p className={classes.note}>{barred ?? 'Ctrl + Enter sends, too.'}</p>
    </form>
  )
}
