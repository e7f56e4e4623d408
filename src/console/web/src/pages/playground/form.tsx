import { Autocomplete, Button, NativeSelect, Switch, Textarea, TextInput } from '@mantine/core'
import { IconPlayerPlay, IconPlayerStop } from '@tabler/icons-react'
import { useState, type FormEvent, type KeyboardEvent } from 'react'
import type { Models } from '../../../../api/routes.ts'
import { Images } from './images.tsx'
import { MESSAGES_MAX_TOKENS, PROTOCOL_NAMES, PROTOCOLS, PROTOCOLS_WITH_STOP, type Prompt, type Protocol } from './prompt.ts'
import classes from './playground.module.css'
import { parseTools, type Tool } from './tools.ts'

/** The fields of the form, as text. */
export interface Draft extends Omit<Prompt, 'maxTokens' | 'temperature' | 'topP' | 'stop' | 'tools'> {
  readonly maxTokens: string
  readonly temperature: string
  readonly topP: string
  /** Stop sequences, one in each line. */
  readonly stop: string
  /** The tools, as a list in JSON. */
  readonly tools: string
  /** Name of a second model, for comparison; empty = no comparison. */
  readonly other: string
}

type DraftErrors = Partial<Record<keyof Draft, string>>

/** @returns the prompt, and the error texts by field */
export function promptOf(draft: Draft): { prompt: Prompt; errors: DraftErrors } {
  const maxTokens = draft.maxTokens.trim() === '' ? null : Number(draft.maxTokens)
  const temperature = draft.temperature.trim() === '' ? null : Number(draft.temperature)
  const topP = draft.topP.trim() === '' ? null : Number(draft.topP)
  const { tools, error: toolsError } = toolsOf(draft.tools)
  return {
    prompt: {
      ...draft, model: draft.model.trim(), maxTokens, temperature, topP, tools, stop: draft.stop.split('\n').filter(line => line !== ''),
    },
    errors: {
      ...draft.model.trim() === '' && { model: 'Enter a model.' },
      ...draft.text.trim() === '' && { text: 'Enter a prompt.' },
      ...maxTokens !== null && !(Number.isSafeInteger(maxTokens) && maxTokens > 0)
        && { maxTokens: 'Enter a whole number, 1 or more.' },
      ...temperature !== null && !(temperature >= 0 && temperature <= 2)
        && { temperature: 'Enter a number from 0 to 2.' },
      ...topP !== null && !(topP >= 0 && topP <= 1) && { topP: 'Enter a number from 0 to 1.' },
      ...toolsError !== null && { tools: toolsError },
    },
  }
}

function toolsOf(text: string): { tools: Tool[]; error: string | null } {
  try {
    return { tools: parseTools(text), error: null }
  } catch (error) {
    return { tools: [], error: error instanceof Error ? error.message : String(error) }
  }
}

export interface PromptFormProps {
  readonly draft: Draft
  readonly change: (changes: Partial<Draft>) => void
  readonly errors: DraftErrors
  readonly models: Models['models']
  readonly isRunning: boolean
  readonly submit: () => void
  readonly stop: () => void
  /** Why the user cannot send; null = the user can send. */
  readonly disabledReason: string | null
}

/** The form of the playground. */
export function PromptForm(props: PromptFormProps) {
  const { draft, change, errors, models, isRunning, submit, stop, disabledReason } = props
  const [isOpen, setOpen] = useState(false)
  const known = models.find(({ name }) => name === draft.model.trim())
  const supported = known === undefined || known.protocols.length === 0 ? PROTOCOLS
    : PROTOCOLS.filter(name => known.protocols.includes(name))
  const protocols = supported.includes(draft.protocol) ? supported : [...supported, draft.protocol]
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    if (!isRunning && disabledReason === null) submit()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) onSubmit(event)
  }
  return (
    // Ctrl + Enter sends the form from any field.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form onSubmit={onSubmit} onKeyDown={onKeyDown} className={classes.form} noValidate>
      <div className={classes.pair}>
        <Autocomplete label="Model" value={draft.model} error={errors.model} maxDropdownHeight={280}
          spellCheck={false}
          data={models.filter(({ protocols }) => protocols.length > 0).map(({ name }) => name)}
          onChange={model => { change({ model }) }} />
        <NativeSelect label="Protocol" value={draft.protocol}
          data={protocols.map(value => ({ value, label: PROTOCOL_NAMES[value] }))}
          onChange={event => { change({ protocol: event.currentTarget.value as Protocol }) }} />
      </div>
      <Autocomplete label="Compare with" value={draft.other} placeholder="No second model" maxDropdownHeight={280}
        spellCheck={false} data={models.filter(({ protocols }) => protocols.length > 0).map(({ name }) => name)}
        onChange={other => { change({ other }) }} />
      <Textarea label="System prompt" rows={2} resize="vertical" value={draft.system} placeholder="None"
        onChange={event => { change({ system: event.currentTarget.value }) }} />
      <Textarea label="Prompt" rows={6} resize="vertical" value={draft.text} error={errors.text}
        onChange={event => { change({ text: event.currentTarget.value }) }} />
      <div className={classes.pair}>
        <TextInput label="Max tokens" inputMode="numeric" value={draft.maxTokens} error={errors.maxTokens}
          autoComplete="off"
          placeholder={draft.protocol === 'messages' ? String(MESSAGES_MAX_TOKENS) : 'Default'}
          onChange={event => { change({ maxTokens: event.currentTarget.value }) }} />
        <TextInput label="Temperature" inputMode="decimal" value={draft.temperature} error={errors.temperature}
          autoComplete="off" placeholder="Default"
          onChange={event => { change({ temperature: event.currentTarget.value }) }} />
      </div>
      <details open={isOpen || errors.tools !== undefined || errors.topP !== undefined}
        onToggle={event => { setOpen(event.currentTarget.open) }}>
        <summary>Images, tools and more parameters</summary>
        <div className={classes.more}>
          <Images images={draft.images} change={images => { change({ images }) }} />
          <Textarea label="Tools" rows={4} resize="vertical" value={draft.tools} error={errors.tools} spellCheck={false}
            description="A JSON list: [{ name, description, parameters }]. Tool definitions of any vendor are accepted."
            onChange={event => { change({ tools: event.currentTarget.value }) }} />
          <TextInput label="Top p" inputMode="decimal" value={draft.topP} error={errors.topP} autoComplete="off" placeholder="Default"
            onChange={event => { change({ topP: event.currentTarget.value }) }} />
          <Textarea label="Stop sequences" rows={2} resize="vertical" value={draft.stop} spellCheck={false}
            disabled={!PROTOCOLS_WITH_STOP.includes(draft.protocol)}
            description={PROTOCOLS_WITH_STOP.includes(draft.protocol) ? 'One per line.' : `${PROTOCOL_NAMES[draft.protocol]} does not support stop sequences.`}
            onChange={event => { change({ stop: event.currentTarget.value }) }} />
        </div>
      </details>
      <div className={classes.send}>
        <Switch label="Stream" checked={draft.stream}
          onChange={event => { change({ stream: event.currentTarget.checked }) }} />
        {/* The keys must differ: otherwise one button is reused, and the click that stops a request could submit the form. */}
        {isRunning
          ? <Button key="stop" variant="default" leftSection={<IconPlayerStop size={16} aria-hidden />}
            onClick={stop}>Stop</Button>
          : <Button key="send" type="submit" disabled={disabledReason !== null}
            leftSection={<IconPlayerPlay size={16} aria-hidden />}>Send</Button>}
      </div>
      <p className={classes.note}>{disabledReason ?? 'Ctrl + Enter also sends the request.'}</p>
    </form>
  )
}
