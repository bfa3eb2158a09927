// Runs every case in every text that the adapter has the features for, and compares what comes out.

/** Whether all were right; `say` gets a line for each. */
export async function run(cases, say) {
  if (!navigator.gpu) throw new Error("this browser has no WebGPU");
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error("WebGPU finds no adapter");
  const known = (text) => text.features.every((feature) => adapter.features.has(feature));
  const wanted = cases.flatMap((one) => one.texts.filter(known).flatMap((text) => text.features));
  const device = await adapter.requestDevice({ requiredFeatures: [...new Set(wanted)] });
  say(`${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`.trim());

  let right = true;
  for (const one of cases) {
    for (const text of one.texts) {
      if (!known(text)) {
        say(`${one.name} (${text.profile}): not run, the adapter lacks ${text.features.join(", ")}`);
        continue;
      }
      const wrong = await failure(device, one, text);
      say(`${one.name} (${text.profile}): ${wrong ?? "right"}`);
      right &&= wrong === null;
    }
  }
  return right;
}

/** What is wrong with one run, or null. */
async function failure(device, one, text) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: text.wgsl });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: text.entry } });
  const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  const buffer = (words, extra) => {
    const made = device.createBuffer({ size: words.length * 4, usage: usage | extra });
    device.queue.writeBuffer(made, 0, new Uint32Array(words));
    return made;
  };
  const buffers = one.buffers.map((words) => buffer(words, GPUBufferUsage.STORAGE));
  const block = buffer(one.params, GPUBufferUsage.UNIFORM);
  const entries = [...buffers, block].map((resource, binding) => ({ binding, resource: { buffer: resource } }));
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });

  const output = buffers[one.output];
  const back = device.createBuffer({ size: output.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(...one.grid);
  pass.end();
  encoder.copyBufferToBuffer(output, 0, back, 0, output.size);
  device.queue.submit([encoder.finish()]);
  const error = await device.popErrorScope();
  if (error) return error.message;

  await back.mapAsync(GPUMapMode.READ);
  const bytes = back.getMappedRange();
  const { exactly, nearly } = one.expected;
  const expected = exactly ?? nearly;
  const given = exactly ? new Uint32Array(bytes) : new Float32Array(bytes);
  const differs = (x, y) => (exactly ? x !== y : !(Math.abs(x - y) <= 1e-5 * Math.max(1, Math.abs(y))));
  const at = expected.findIndex((value, i) => differs(given[i], value));
  return at < 0 ? null : `element ${at} is ${given[at]} instead of ${expected[at]}`;
}
