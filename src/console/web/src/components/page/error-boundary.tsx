import { Component, type ReactNode } from 'react'
import { PageLoadError } from '../../lazy-page.ts'
import { LoadError } from './states.tsx'

interface ErrorBoundaryState {
  readonly error: Error | null
}

/** Shows an error in place of a page that throws. The navigation can still be used. */
export class ErrorBoundary extends Component<{ readonly children: ReactNode }, ErrorBoundaryState> {
  override state: ErrorBoundaryState = { error: null }

  static getDerivedStateFromError(error: unknown): ErrorBoundaryState {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override render() {
    const { error } = this.state
    if (error === null) return this.props.children
    const retry = error instanceof PageLoadError
      ? () => { window.location.reload() }
      : () => { this.setState({ error: null }) }
    return <LoadError error={error} retry={retry} />
  }
}
