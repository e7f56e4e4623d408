import type { ProviderConfig } from '../config/types.ts'
import { azure } from './azure/azure.ts'
import { bedrock } from './bedrock/bedrock.ts'
import type { Provider } from './shared/provider.ts'
import { vertex } from './vertex/vertex.ts'

export function providerOf(config: ProviderConfig): Provider {
  switch (config.kind) {
    case 'azure': return azure(config)
    case 'bedrock': return bedrock()
    case 'vertex': return vertex(config)
  }
}
