"""Cells of first programming courses, plainly and captured, beside each other: ``python benchmarks/everyday_cells.py [NAME ...]``.

Each runs in IPython as Python has it, and under ``%%tensor`` twice, with what is shown; wall seconds, of one run each, and whether the same
was printed. What is compiled goes on in another process, and is not in it. Prints a table.
"""
# pyright: basic

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings

from IPython.testing.globalipapp import start_ipython  # noqa: TID251 (the cells run in it)

START = """
import numpy as np, math, random
rng=np.random.default_rng(0)
x=np.linspace(0,10,500); y=np.sin(x)+.1*rng.normal(size=500); A=rng.normal(size=(50,50)); b=rng.normal(size=50)
X=rng.normal(size=(200,3)); t_=X@np.array([1.,-2,.5])+.1*rng.normal(size=200)
"""

CELLS = {
    "Newton's method, printed": """
z=2.0
for k in range(50):
    f=z**3-2*z-5
    d=3*z**2-2
    z_new=z-f/d
    print(k, z_new, abs(z_new-z))
    if abs(z_new-z)<1e-12: break
    z=z_new
""",
    "bisection": """
lo,hi=0.0,3.0
while hi-lo>1e-12:
    mid=(lo+hi)/2
    if np.cos(mid)*np.cos(lo)<=0: hi=mid
    else: lo=mid
print(mid)
""",
    "Euler's method by lists": """
h=0.001
ts=[0.0]; ys=[1.0]
while ts[-1]<5:
    ys.append(ys[-1]+h*(-2*ys[-1]+math.sin(ts[-1])))
    ts.append(ts[-1]+h)
print(ys[-1], len(ts))
""",
    "Euler's method in an array": """
n=3000; h=5/n
yy=np.zeros(n+1); yy[0]=1; tt=np.linspace(0,5,n+1)
for i in range(n):
    yy[i+1]=yy[i]+h*(-2*yy[i]+np.sin(tt[i]))
print(yy[-1])
""",
    "Monte Carlo": """
n=20000; inside=0
random.seed(1)
for i in range(n):
    a,b2=random.random(),random.random()
    if a*a+b2*b2<1: inside+=1
print(4*inside/n)
""",
    "random walk": """
pos=[0]
for i in range(2000):
    pos.append(pos[-1]+rng.choice([-1,1]))
print(max(pos),min(pos))
""",
    "table of errors": """
for n in [10,100,1000]:
    xs=np.linspace(0,np.pi,n)
    I=np.trapezoid(np.sin(xs),xs)
    print(f"{n:5d} {I:.8f} {abs(I-2):.2e}")
""",
    "gradient descent by batches": """
w=np.zeros(3)
losses=[]
for epoch in range(20):
    idx=rng.permutation(200)
    for s in range(0,200,20):
        j=idx[s:s+20]
        g=2*X[j].T@(X[j]@w-t_[j])/20
        w-=0.05*g
    losses.append(np.mean((X@w-t_)**2))
    print(epoch, losses[-1])
""",
    "k-means": """
pts=rng.normal(size=(300,2)); C=pts[:3].copy()
for it in range(15):
    d=((pts[:,None]-C[None])**2).sum(-1)
    lab=d.argmin(1)
    newC=np.array([pts[lab==k].mean(0) for k in range(3)])
    if np.allclose(newC,C): break
    C=newC
print(it, C)
""",
    "power iteration, printed": """
v=np.ones(50)
for i in range(200):
    u=A@v
    lam=np.linalg.norm(u)
    v=u/lam
    if i%50==0: print(i,lam)
""",
    "Jacobi's method": """
D=np.diag(np.full(50,60.))+A
xk=np.zeros(50)
for k in range(100):
    xn=(b-(D-np.diag(np.diag(D)))@xk)/np.diag(D)
    err=np.linalg.norm(xn-xk,np.inf)
    xk=xn
    if err<1e-10:
        print("converged",k); break
""",
    "Gaussian elimination": """
M=A.copy()+10*np.eye(50); n=50
for k in range(n):
    for i in range(k+1,n):
        f=M[i,k]/M[k,k]
        M[i,k:]-=f*M[k,k:]
print(M[-1,-1])
""",
    "primes": """
ps=[]
for n in range(2,2000):
    for p in ps:
        if p*p>n: ps.append(n); break
        if n%p==0: break
    else: ps.append(n)
print(len(ps))
""",
    "counts in a dictionary": """
counts={}
for v in np.round(y,1):
    counts[v]=counts.get(v,0)+1
print(sorted(counts)[:3])
""",
    "logistic map": """
rs=np.linspace(2.5,4,200); out=[]
for r in rs:
    q=.5
    for i in range(100): q=r*q*(1-q)
    out.append(q)
print(np.mean(out))
""",
    "Fibonacci numbers": """
F=[0,1]
for i in range(200): F.append(F[-1]+F[-2])
print(F[50])
""",
    "Runge and Kutta, steps in a list": """
def f(t,s): return np.array([s[1],-s[0]])
s=np.array([1.,0.]); t=0.; h=.01; traj=[s]
for i in range(600):
    k1=f(t,s);k2=f(t+h/2,s+h/2*k1);k3=f(t+h/2,s+h/2*k2);k4=f(t+h,s+h*k3)
    s=s+h/6*(k1+2*k2+2*k3+k4); t+=h
    traj.append(s)
traj=np.array(traj); print(traj[-1])
""",
    "game of life": """
G=rng.integers(0,2,(30,30))
for g in range(40):
    N=sum(np.roll(np.roll(G,i,0),j,1) for i in (-1,0,1) for j in (-1,0,1) if (i,j)!=(0,0))
    G=((N==3)|((G==1)&(N==2))).astype(int)
    if g%10==0: print(g,G.sum())
""",
    "heat equation": """
u=np.zeros(100); u[40:60]=1
for n in range(500):
    u[1:-1]=u[1:-1]+.4*(u[2:]-2*u[1:-1]+u[:-2])
    if n%100==0: print(n,u.max())
""",
    "words": """
words="the quick brown fox jumps over the lazy dog".split()*50
freq={}
for w_ in words: freq[w_]=freq.get(w_,0)+1
print(freq["the"])
""",
    "running total": """
total=0
for i,v in enumerate(y):
    total+=v
    if total>20:
        print(i); break
""",
    "product of matrices by lists": """
R=[[sum(A[i,k]*A[k,j] for k in range(10)) for j in range(10)] for i in range(10)]
print(R[0][0])
""",
    "Adam": """
w=np.zeros(3); m=np.zeros(3); v=np.zeros(3)
for k in range(1,401):
    g=2*X.T@(X@w-t_)/200
    m=.9*m+.1*g; v=.999*v+.001*g*g
    w=w-.01*(m/(1-.9**k))/(np.sqrt(v/(1-.999**k))+1e-8)
    if k%100==0: print(k, np.mean((X@w-t_)**2))
""",
    "bootstrap": """
means=[]
for i in range(500):
    s=rng.choice(y,size=100)
    means.append(s.mean())
print(np.percentile(means,[2.5,97.5]))
""",
    "fit of a polynomial": """
p=np.polyfit(x,y,3); r=y-np.polyval(p,x); print(r.std()); R2=1-np.sum(r**2)/np.sum((y-y.mean())**2); print(f"{R2:.3f}")
""",
    "Metropolis and Hastings": """
cur=0.; chain=[]
for i in range(1000):
    prop=cur+rng.normal()
    if np.log(rng.random())<-.5*(prop**2-cur**2): cur=prop
    chain.append(cur)
print(np.mean(chain),np.std(chain))
""",
}


def run(shell, text):
    """Run a cell: the seconds that it took, and what it printed."""
    said = io.StringIO()
    begin = time.perf_counter()
    with contextlib.redirect_stdout(said):
        shell.run_cell(text)
    return time.perf_counter() - begin, said.getvalue()


def main(wanted):
    """Print the table."""
    shell = start_ipython()
    shell.run_line_magic("load_ext", "tensormagic")
    warnings.simplefilter("ignore")
    print("| cell | Python | first | again | printed |\n|---|---:|---:|---:|---|")
    for name in wanted or CELLS:
        taken = []
        for magic in ("", "%%tensor\n", "%%tensor\n"):
            run(shell, START)
            taken.append(run(shell, magic + CELLS[name].lstrip()))
        (plain, text), (first, told), (again, _) = taken
        same = "the same" if told.startswith(text) else "other digits"
        print(f"| {name} | {plain:.3f} | {first:.3f} | {again:.3f} | {same} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
