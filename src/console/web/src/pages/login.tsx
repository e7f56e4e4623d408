import { Alert, Button, PasswordInput, Tabs, TextInput } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import { useEffect, useRef, useState, type FormEvent } from 'react'
import { ApiError, send, type BodyOf } from '../api.ts'
import type { Session } from '../api-hooks.ts'
import { Copy } from '../components/copy.tsx'
import icon from '../icon.svg'
import { useLogin } from '../session.ts'
import classes from './login/login.module.css'

/** Login by single sign-on, by name and password, or by API key. If there are no users, explains how to add the first user. */
export function Login({ session }: { readonly session: Session }) {
  const card = useRef<HTMLDivElement>(null)
  useEffect(() => {
    document.title = 'Log in · Model Gateway'
    card.current?.querySelector<HTMLElement>('[data-autofocus], input')?.focus()
  }, [])
  const { single_sign_on: provider } = session
  const isUnconfigured = !session.has_users && provider === null
  return (
    <div className={classes.page}>
      <main className={classes.box}>
        <div className={classes.brand}>
          <img src={icon} alt="" width={44} height={44} />
          <div>
            <h1>Model Gateway</h1>
            <p>Log in to the console</p>
          </div>
        </div>
        <div ref={card} className={classes.card}>
          {provider !== null && <SingleSignOn provider={provider} />}
          <Tabs defaultValue={session.has_users ? 'password' : 'key'} keepMounted={false}>
            <Tabs.List grow>
              {(session.has_users || isUnconfigured) && <Tabs.Tab value="password">Name and password</Tabs.Tab>}
              <Tabs.Tab value="key">API key</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="password">
              {session.has_users ? <PasswordForm /> : <FirstUser />}
            </Tabs.Panel>
            <Tabs.Panel value="key">
              <KeyForm />
              {isUnconfigured && <FirstUser />}
            </Tabs.Panel>
          </Tabs>
        </div>
      </main>
      <footer className={classes.foot}>v{session.version}</footer>
    </div>
  )
}

/** A login attempt and its state. */
function useLoginAttempt() {
  const { login } = useLogin()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const attempt = async (body: BodyOf<'POST /session'>) => {
    setBusy(true)
    setProblem(null)
    try {
      await login(body)
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error))
      setBusy(false)
    }
  }
  return { attempt, isBusy, problem }
}

/** Texts for failed logins at the identity provider. The page's URL contains the name of the failure. */
const FAILURES: Readonly<Record<string, string>> = {
  denied: 'The identity provider did not log you in: access was denied there.',
  no_role: 'You are logged in at the identity provider, but your account has no role here. Ask an operator to add your mail address or one of your groups.',
  expired: 'This login has expired or was already used. Log in again.',
  unavailable: 'The identity provider does not respond. Try again later, or log in another way.',
  clock: 'The clocks of the gateway and the identity provider differ. Ask an operator to correct them.',
  rejected: 'The gateway cannot use the response of the identity provider. An operator finds the reason in the gateway log.',
  too_many: 'Too many attempts. Try again in a moment.',
}

/** @param provider - host of the identity provider */
function SingleSignOn({ provider }: { readonly provider: string }) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState(() => FAILURES[new URLSearchParams(window.location.search).get('login') ?? ''] ?? null)
  const begin = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const { url } = await send('POST /session/single-sign-on', { body: { return_to: currentPage() } })
      window.location.assign(url)
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <div className={classes.provider}>
      <Button data-autofocus loading={isBusy} fullWidth onClick={() => { void begin() }}>Log in with single sign-on</Button>
      <p>at {provider}</p>
      <LoginError text={problem} />
    </div>
  )
}

/** Path and query of the page, without the name of an earlier failure. */
function currentPage(): string {
  const url = new URL(window.location.href)
  url.searchParams.delete('login')
  return url.pathname + url.search
}

function PasswordForm() {
  const { attempt, isBusy, problem } = useLoginAttempt()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void attempt({ name, password })
  }
  return (
    <form className={classes.form} onSubmit={submit}>
      <TextInput label="Name" required withAsterisk={false} autoComplete="username" autoCapitalize="none"
        spellCheck={false} value={name} onChange={event => { setName(event.currentTarget.value) }} />
      <PasswordInput label="Password" required withAsterisk={false} autoComplete="current-password"
        value={password}
        onChange={event => { setPassword(event.currentTarget.value) }}
        visibilityToggleButtonProps={{ 'aria-label': 'Show password' }} />
      <LoginError text={problem} />
      <Button type="submit" loading={isBusy} fullWidth>Log in</Button>
    </form>
  )
}

function KeyForm() {
  const { attempt, isBusy, problem } = useLoginAttempt()
  const [key, setKey] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void attempt({ key: key.trim() })
  }
  return (
    <form className={classes.form} onSubmit={submit}>
      <PasswordInput label="API key" required withAsterisk={false} autoComplete="off" value={key}
        spellCheck={false}
        description="Shows only the usage of this key"
        onChange={event => { setKey(event.currentTarget.value) }}
        visibilityToggleButtonProps={{ 'aria-label': 'Show key' }} />
      <LoginError text={problem} />
      <Button type="submit" loading={isBusy} fullWidth>Log in</Button>
    </form>
  )
}

function LoginError({ text }: { readonly text: string | null }) {
  return (
    <div role="alert">
      {text !== null && <Alert color="red" icon={<IconAlertTriangle size={18} />} p="xs">{text}</Alert>}
    </div>
  )
}

const COMMAND = 'gateway password'
const YAML = `console:
  users:
    - name: ops
      role: admin
      password: "scrypt:…"   # output of the command`

/** Explains how the operator adds the first user, because there is no default password. */
function FirstUser() {
  return (
    <div className={classes.note}>
      <h2>No console user is configured</h2>
      <p>On the gateway's machine, create a password hash:</p>
      <div className={classes.block}>
        <pre className={classes.code}>{COMMAND}</pre>
        <Copy value={COMMAND} what="command" />
      </div>
      <p>
        Add it to gateway.yaml. Then send SIGHUP to the gateway or restart it. With <code>--watch</code> the
        gateway reloads the file itself.
      </p>
      <div className={classes.block}>
        <pre className={classes.code}>{YAML}</pre>
        <Copy value={YAML} what="configuration" />
      </div>
    </div>
  )
}
