import type { RawConfig } from './raw-schema.ts'

export type * from './raw-schema.ts'

type Section<K extends keyof RawConfig> = NonNullable<RawConfig[K]>

export type RawAuth = NonNullable<RawUpstream['auth']>
export type RawCaller = NonNullable<Section<'callers'>[number]>
export type RawCheck = NonNullable<Section<'checks'>[string]>
export type RawCluster = Section<'cluster'>
export type RawHook = NonNullable<Section<'hooks'>[string]>
export type RawKey = NonNullable<Section<'keys'>[number]>
export type RawOidc = NonNullable<Section<'console'>['oidc']>
export type RawRoute = NonNullable<Section<'routes'>[number]>
export type RawTelemetry = Section<'telemetry'>
export type RawUpstream = NonNullable<Section<'upstreams'>[string]>
