/** A worker that reports that it listens, and does nothing. */
import { connectToSupervisor } from '../../src/gateway/worker.ts'

const end = () => process.exit()
const line = connectToSupervisor()
line?.handleCommands({ drain: end, close: end, metricsReport: () => null, reload: () => {}, control: async () => [] })
line?.listening({ addresses: { base: 'http://127.0.0.1:1', console: null, metrics: null }, docs: null })
