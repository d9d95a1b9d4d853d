import time, jax, jax.numpy as jnp, numpy as np, sys
import ipujax as ipu
def plain(x,g,b):
    m=jnp.mean(x,-1,keepdims=True); v=jnp.mean((x-m)**2,-1,keepdims=True)
    return (x-m)*jax.lax.rsqrt(v+1e-6)*g+b
def plaing(x,g,b,G=8):
    p=x.reshape(x.shape[0],-1,x.shape[-1]//G,G); m=jnp.mean(p,(1,2),keepdims=True); v=jnp.mean((p-m)**2,(1,2),keepdims=True)
    return ((p-m)*jax.lax.rsqrt(v+1e-6)).reshape(x.shape)*g+b
layer=lambda x,g,b: ipu.nn.layer_norm(x,g,b)
layers=lambda x,g,b: ipu.nn.layer_norm(x,g,b,use_stable_statistics=True)
group=lambda x,g,b: ipu.nn.group_norm(x,g,b,groups=8)
r=np.random.RandomState(0)
sets=[("ln",layer,plain,(512,1024)),("ln stable",layers,plain,(512,1024)),("gn",group,plaing,(8,32,32,64))]
for name,f,p,shape in sets:
    C=shape[-1]
    x=r.randn(*shape).astype('f4'); g=np.ones(C,'f4'); b=g*0; d=r.randn(*shape).astype('f4')
    for mode in("fwd","grad","both"):
        def make(f):
            if mode=="fwd": return jax.jit(lambda x,g,b,d: f(x,g,b))
            if mode=="grad": return jax.jit(lambda x,g,b,d: jax.vjp(f,x,g,b)[1](d))
            return jax.jit(lambda x,g,b,d:(lambda y,v:(y,v(d)))(*jax.vjp(f,x,g,b)))
        fs={}
        for key,h,pl in (("cpu",p,"cpu"),("plain",p,"ipu"),("op",f,"ipu")):
            dev=jax.devices(pl)[0]; a=[jax.device_put(z,dev) for z in (x,g,b,d)]; h=make(h); out=h(*a); jax.block_until_ready(out); fs[key]=(h,a,out)
        err=max(float(np.abs(np.asarray(u)-np.asarray(v)).max()) for u,v in zip(jax.tree.leaves(fs["cpu"][2]),jax.tree.leaves(fs["op"][2])))
        ts={k:[] for k in fs}
        for _ in range(9):
            for k,(h,a,_o) in fs.items():
                t=time.perf_counter(); jax.block_until_ready(h(*a)); ts[k].append(time.perf_counter()-t)
        ts={k:round(sorted(t)[len(t)//2]*1e3,3) for k,t in ts.items()}
        cyc={k:fs[k][0].lower(*fs[k][1]).compile().cost_analysis()["cycles"] for k in("plain","op")}
        print(name,mode,ts,cyc,"ratio",round(ts["op"]/ts["cpu"],2),"err",err,flush=True)
